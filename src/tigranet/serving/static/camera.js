// A picture from the camera.

const find = (id) => document.getElementById(id);

/** Whether this browser gives pages access to a camera. It does so for this machine and for HTTPS only. */
export function hasCamera() {
  return Boolean(navigator.mediaDevices?.getUserMedia);
}

/** Show the camera, and return the picture that the user takes as a file, or null if the user closes it. */
export async function takePicture() {
  const dialog = find("camera");
  const video = find("camera_picture");
  const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
  video.srcObject = stream;
  dialog.showModal();
  try {
    const isTaken = await new Promise((resolve) => {
      find("camera_take").onclick = () => resolve(true);
      find("camera_close").onclick = () => resolve(false);
      dialog.onclose = () => resolve(false); // the Escape key
    });
    return isTaken && video.videoWidth > 0 ? await pictureOf(video) : null;
  } finally {
    for (const track of stream.getTracks()) track.stop();
    video.srcObject = null;
    dialog.close();
  }
}

async function pictureOf(video) {
  const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
  canvas.getContext("2d").drawImage(video, 0, 0);
  return new File([await canvas.convertToBlob({ type: "image/png" })], "camera.png", { type: "image/png" });
}
