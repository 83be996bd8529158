// An answer of the server in words.

/** Return the name of the most probable class. */
export function mostProbable(probabilities) {
  return Object.keys(probabilities).reduce((a, b) => (probabilities[b] > probabilities[a] ? b : a));
}

/** Return the probability of the label or, for an unknown image, the most probable class with its probability. */
export function probabilityText({ unknown, probability, probabilities }) {
  const number = probability.toFixed(4);
  return unknown ? `most probable class: ${mostProbable(probabilities)}, ${number}` : number;
}

/** Return the label, and its probability if the image is not unknown. */
export function shortText({ label, unknown, probability }) {
  return unknown ? label : `${label} ${probability.toFixed(4)}`;
}
