// One image: rotate it, and ask the models again at every angle.

import { probabilityText, shortText } from "./answer_text.js";
import { drawBase, drawRotated } from "./evidence.js";
import { canvasOf, frameOf, inColour } from "./frame.js";
import { Latest } from "./latest.js";
import { ModelCard } from "./model_card.js";
import { pngOf } from "./png.js";
import { normalized, rotated } from "./rotation.js";
import { explain, readsColour } from "./server.js";

/** Smaller images are drawn with visible pixels. */
const SMOOTH_SIDE = 160;
/** Degrees between the angles of a full turn. */
const FULL_TURN_STEP = 10;
const ANNOUNCE_MILLISECONDS = 700;

const find = (id) => document.getElementById(id);

export class ImageView {
  #frame = null;
  #file = null;
  #angle = 0;
  #cards = [];
  #tasks = [];
  #models = [];
  #last = null; // the rotated frame at the last angle, and its files, which the models share
  #numOpened = 0;
  #turning = false;
  #timer = 0;
  #report;
  #announce;

  /** `report` shows an error, or null for none; `announce` reads a text to users of screen readers. */
  constructor(report, announce) {
    this.#report = report;
    this.#announce = announce;
    find("angle").addEventListener("input", (event) => this.rotateTo(Number(event.target.value)));
    find("turn_left").addEventListener("click", () => this.rotateTo(normalized(this.#angle + 90)));
    find("turn_right").addEventListener("click", () => this.rotateTo(normalized(this.#angle - 90)));
    find("show_evidence").addEventListener("change", () => this.#draw());
    find("full_turn").addEventListener("click", () => this.#fullTurn());
    this.#rotateByDragging(find("stage"));
    new ResizeObserver(() => this.#draw()).observe(find("stage"));
  }

  /** Use these models, one or two. */
  useModels(models) {
    this.#models = models;
    if (this.#frame !== null) this.#start();
  }

  /** Open an image file. */
  async open(file) {
    const number = ++this.#numOpened;
    let frame;
    try {
      frame = await frameOf(file);
    } catch (error) {
      if (number === this.#numOpened) this.#report(`${file.name || "The image"} cannot be shown: ${error.message}`);
      return;
    }
    if (number !== this.#numOpened) return; // another file was opened meanwhile
    this.#report(null);
    [this.#frame, this.#file] = [frame, file];
    find("file_name").textContent = file.name || "Image";
    find("file_note").textContent = [`${frame.width} × ${frame.height} pixels.`, ...frame.notes].join(" ");
    find("start").hidden = true;
    find("workspace").hidden = false;
    this.#start();
    const focused = document.activeElement;
    if (focused === document.body || focused.closest("[hidden]")) find("angle").focus({ preventScroll: true });
  }

  #start() {
    this.#turning = false;
    this.#last = null;
    const upright = canvasOf(this.#frame);
    this.#cards = this.#models.map((model) => new ModelCard(model, upright));
    this.#tasks = this.#cards.map((card) => new Latest((angle) => this.#ask(card, angle)));
    find("cards").replaceChildren(...this.#cards.map((card) => card.element));
    find("cards").dataset.count = this.#cards.length;
    this.rotateTo(0);
  }

  /** Rotate the image, in degrees, counter-clockwise, and ask the models. */
  rotateTo(degrees) {
    this.#turning = false;
    this.#show(degrees);
    for (const task of this.#tasks) task.run(this.#angle);
  }

  #show(degrees) {
    this.#angle = degrees === 360 ? 360 : normalized(degrees);
    find("angle").value = this.#angle;
    find("angle").setAttribute("aria-valuetext", `${this.#angle} degrees counter-clockwise`);
    find("angle_text").textContent = `${this.#angle}°`;
    for (const card of this.#cards) card.moveTo(this.#angle);
    this.#draw();
  }

  #frameAt(angle) {
    const degrees = normalized(angle);
    if (this.#last?.degrees !== degrees) {
      this.#last = { degrees, frame: rotated(this.#frame, degrees), files: {} };
    }
    return this.#last;
  }

  /** Return a PNG file. Models for colour read three channels, also of a grey image. */
  #fileAt(angle, isColour) {
    const { frame, files } = this.#frameAt(angle);
    return (files[isColour] ??= pngOf(isColour ? inColour(frame) : frame));
  }

  /** Ask a model. Changes are those against 0 degrees, so that answer comes first. */
  async #ask(card, angle) {
    if (card.answer === null && normalized(angle) !== 0) {
      await this.#ask(card, 0);
      if (card.answer === null) return;
    }
    if (!this.#cards.includes(card)) return; // another image or another model was chosen meanwhile
    try {
      card.element.setAttribute("aria-busy", "true");
      card.readsColour ??= await readsColour(card.model);
      const answer = await explain(card.model, await this.#fileAt(angle, card.readsColour));
      if (!this.#cards.includes(card)) return;
      card.show(answer, angle);
      this.#draw();
      this.#showShortAnswer();
      this.#announceLater();
    } catch (error) {
      if (!this.#cards.includes(card)) return;
      this.#turning = false;
      card.showError(`There is no answer at ${angle}°: ${error.message}`);
    } finally {
      card.element.setAttribute("aria-busy", "false");
    }
  }

  /** Repeat the answers beside the angle, for narrow windows. */
  #showShortAnswer() {
    const answers = this.#cards.filter((card) => card.answer !== null).map((card) => card.answer);
    find("short_answer").textContent = answers.map(shortText).join(" · ");
  }

  #announceLater() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const answers = this.#cards.filter((card) => card.answer !== null);
      const text = answers.map(({ model, answer }) => `${model}: ${answer.label}, ${probabilityText(answer)}`);
      this.#announce(`${text.join("; ")}, at ${this.#angle} degrees`);
    }, ANNOUNCE_MILLISECONDS);
  }

  /** Ask for the answers all around. The image moves with it, except where the user prefers less motion. */
  async #fullTurn() {
    if (this.#turning) {
      this.#turning = false;
      return;
    }
    const [cards, start] = [this.#cards, this.#angle];
    const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#turning = true;
    find("full_turn").textContent = "Stop";
    for (let angle = 0; angle < 360 && this.#turning; angle += FULL_TURN_STEP) {
      if (moves) this.#show(angle);
      await Promise.all(this.#tasks.map((task) => task.run(angle)));
    }
    find("full_turn").textContent = "Measure a full turn";
    const isComplete = this.#turning && cards === this.#cards;
    if (isComplete) this.rotateTo(start);
  }

  /** Draw the pixels that are sent to the server, and the explanation of the first model. */
  #draw() {
    const canvas = find("stage");
    if (this.#frame === null || canvas.clientWidth === 0) return;
    canvas.width = canvas.height = Math.round(canvas.clientWidth * devicePixelRatio);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = this.#frame.side >= SMOOTH_SIDE;
    canvas.setAttribute("aria-label", `${this.#file.name || "The image"}, rotated by ${this.#angle} degrees`);
    const picture = canvasOf(this.#frameAt(this.#angle).frame);
    const card = this.#cards[0];
    if (!find("show_evidence").checked || !card?.answer) {
      context.drawImage(picture, 0, 0, canvas.width, canvas.height);
      return;
    }
    drawBase(context, picture);
    context.imageSmoothingEnabled = true;
    drawRotated(context, card.answer.picture, this.#angle - card.angle); // its answer may be that of another angle
  }

  #rotateByDragging(canvas) {
    let grip = null; // the angle of the pointer minus that of the image
    const pointerAngle = (event) => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
      return (-Math.atan2(y, x) * 180) / Math.PI;
    };
    canvas.addEventListener("pointerdown", (event) => {
      grip = pointerAngle(event) - this.#angle;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (grip !== null) this.rotateTo(Math.round(pointerAngle(event) - grip));
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (grip = null));
  }
}
