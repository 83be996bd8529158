// Requests to the server that this page comes from. The token is kept in this module, in memory only.

let token = null;

/** An answer of the server that is not a success. */
export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Use a bearer token for all further requests. */
export function useToken(value) {
  token = value;
}

async function request(path, body) {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const options = body === undefined ? { headers } : { method: "POST", headers, body };
  let response;
  try {
    response = await fetch(path, { ...options, credentials: "omit" });
  } catch {
    throw new ServerError(0, "no answer from the server: it has stopped, or the file is larger than it accepts");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new ServerError(response.status, answer.error ?? `the server answers with status ${response.status}`);
}

async function json(path, body) {
  return (await request(path, body)).json();
}

/** Return the names of the models. */
export async function listModels() {
  return (await json("/v2/models")).models;
}

/** Return whether a model reads colour. Others read any image, as grey. */
export async function readsColour(model) {
  const { inputs } = await json(`/v2/models/${encodeURIComponent(model)}`);
  return inputs[0].shape[3] > 1;
}

/** Predict the class of an image file. */
export function predict(model, file) {
  return json(`/predict?model=${encodeURIComponent(model)}`, file);
}

/** Predict the class of an image file, and explain the prediction or another class. */
export function explain(model, file, explainedClass = null) {
  const choice = explainedClass === null ? "" : `&class=${encodeURIComponent(explainedClass)}`;
  return json(`/explain?model=${encodeURIComponent(model)}${choice}`, file);
}

/** Return the decoded image as a PNG file, for formats that this browser does not know. */
export async function preview(file) {
  return (await request("/preview", file)).blob();
}
