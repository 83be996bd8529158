import torch

from tigranet.ops.cpu.arrays import as_array, as_mask


def test_a_contiguous_tensor_is_not_copied():
    tensor = torch.rand(2, 3, requires_grad=True)
    as_array(tensor)[0, 0] = 7
    assert tensor[0, 0] == 7


def test_other_tensors_are_copied_in_order():
    tensor = torch.arange(6).reshape(2, 3).T
    assert as_array(tensor).tolist() == tensor.tolist()
    assert as_array(tensor).flags.c_contiguous


def test_a_mask_is_bytes_with_one_row_per_map():
    mask = torch.tensor([[[True, False]], [[False, True]]])
    array, masked = as_mask(mask, 2, 2)
    assert masked
    assert array.tolist() == [[1, 0], [0, 1]]
    assert as_mask(mask[:0], 0, 2)[0].shape == (0, 2)
    assert not as_mask(None, 2, 2)[1]
