"""Shards: images of one size in tar files, from which a training reads the images of each batch when it needs them.

``shard_files`` describes the files in a folder of shards, ``writer`` writes one shard, ``reader`` reads images at known
places, and ``stored_images`` is the tensor that a training indexes.
"""
