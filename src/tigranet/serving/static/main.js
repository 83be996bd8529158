// The page as a whole: models, token, views, and where images come from.

import { hasCamera, takePicture } from "./camera.js";
import { chosenFiles, droppedFiles, imagesOf } from "./dropped_files.js";
import { FolderView } from "./folder_view.js";
import { ImageView } from "./image_view.js";
import { listModels, useToken } from "./server.js";

const NONE = "";
const UNAUTHORIZED = 401;

const find = (id) => document.getElementById(id);

function report(text) {
  find("message").hidden = text === null;
  find("message").textContent = text ?? "";
}

function announce(text) {
  find("announcement").textContent = text;
}

function openImage(file) {
  location.hash = "image";
  imageView.open(file);
}

function openFiles(files) {
  const images = imagesOf(files);
  if (images.length === 0) {
    report(`There is no image among ${files.length} files: expected PNG, JPEG, WebP, GIF, BMP or TIFF`);
    return;
  }
  report(null);
  location.hash = "folder";
  folderView.open(images, files.length - images.length);
}

const imageView = new ImageView(report, announce);
const folderView = new FolderView(openImage, announce);

function showView() {
  const isFolder = location.hash === "#folder";
  find("image_view").hidden = isFolder;
  find("folder_view").hidden = !isFolder;
  find("other_field").hidden = isFolder || find("other").options.length < 2;
  for (const [id, isCurrent] of [["to_folder", isFolder], ["to_image", !isFolder]]) {
    if (isCurrent) find(id).setAttribute("aria-current", "page");
    else find(id).removeAttribute("aria-current");
  }
}

function useModels() {
  const [model, other] = [find("model").value, find("other").value];
  imageView.useModels(other === NONE || other === model ? [model] : [model, other]);
  return model;
}

async function start() {
  let models;
  try {
    models = await listModels();
  } catch (error) {
    const needsToken = error.status === UNAUTHORIZED;
    const isFirst = find("token_form").hidden;
    find("token_form").hidden = !needsToken;
    report(needsToken && isFirst ? null : needsToken ? "This is not the token of the server." : error.message);
    if (needsToken) find("token").focus();
    return;
  }
  report(null);
  find("token_form").hidden = true;
  find("model").replaceChildren(...models.map((name) => new Option(name, name)));
  find("other").replaceChildren(new Option("no other", NONE), ...models.map((name) => new Option(name, name)));
  if (models.length < 2) find("other").replaceChildren();
  folderView.useModel(useModels());
  showView();
  listen();
}

find("token_form").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(find("token").value.trim());
  find("token").value = "";
  start();
});

function listen() {
  addEventListener("hashchange", showView);
  find("model").addEventListener("change", () => folderView.useModel(useModels()));
  find("other").addEventListener("change", useModels);
  listenToButtons();
  listenToInputs();
  listenToDropsAndPaste();
}

function listenToButtons() {
  const opened = { choose_folder: "folder_input", choose_files: "files_input" };
  for (const [button, input] of Object.entries(opened)) {
    find(button).addEventListener("click", () => find(input).click());
  }
  for (const button of document.querySelectorAll("[data-action=choose]")) {
    button.addEventListener("click", () => find("image_input").click());
  }
  for (const button of document.querySelectorAll("[data-action=camera]")) {
    button.hidden = !hasCamera();
    button.addEventListener("click", async () => {
      try {
        const picture = await takePicture();
        if (picture !== null) openImage(picture);
      } catch (error) {
        report(`There is no picture from a camera: ${error.message}`);
      }
    });
  }
}

function listenToInputs() {
  const choose = (id, open) =>
    find(id).addEventListener("change", (event) => {
      const files = chosenFiles(event.target);
      event.target.value = ""; // so that the same file can be chosen again
      if (files.length > 0) open(files);
    });
  choose("image_input", ([{ file }]) => openImage(file));
  choose("files_input", openFiles);
  choose("folder_input", openFiles);
}

function listenToDropsAndPaste() {
  const isDrag = (isOver) => document.body.classList.toggle("dragging", isOver);
  addEventListener("dragover", (event) => {
    event.preventDefault();
    isDrag(true);
  });
  addEventListener("dragleave", (event) => isDrag(event.relatedTarget !== null));
  addEventListener("drop", async (event) => {
    event.preventDefault();
    isDrag(false);
    const { files, isFolder } = await droppedFiles(event.dataTransfer);
    if (files.length > 1 || isFolder) openFiles(files);
    else if (files.length === 1 && location.hash === "#folder") openFiles(files);
    else if (files.length === 1) openImage(files[0].file);
  });
  addEventListener("paste", (event) => {
    const [file] = event.clipboardData.files;
    if (file !== undefined) openImage(file);
  });
}

start();
