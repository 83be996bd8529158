// Files that are dropped, pasted or chosen, with their paths.

const SUFFIX = /\.(png|jpe?g|bmp|gif|webp|tiff?)$/i;

/** A file and its path below the folder that was chosen. */
const withPath = (file, path) => ({ file, path: path || file.name });

/** Return the files of an input element. */
export function chosenFiles(input) {
  return [...input.files].map((file) => withPath(file, file.webkitRelativePath));
}

/** Return those files whose name ends as that of an image does. */
export function imagesOf(files) {
  return files.filter(({ path }) => SUFFIX.test(path));
}

/** Return the files of a drop, with those in folders, and whether it was one file. */
export async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return { files: [...transfer.files].map((file) => withPath(file)), isFolder: false };
  const files = (await Promise.all(entries.map(filesOf))).flat();
  return { files, isFolder: entries.some((entry) => entry.isDirectory) };
}

async function filesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [withPath(file, entry.fullPath.replace(/^\//, ""))];
  }
  const reader = entry.createReader();
  const files = [];
  for (;;) {
    // The reader returns at most 100 entries at a time.
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (entries.length === 0) return files;
    files.push(...(await Promise.all(entries.map(filesOf))).flat());
  }
}
