// At most one task at a time, and of those that wait only the latest.

export class Latest {
  #task;
  #waiting = null;
  #work = null;

  /** `task` is an asynchronous function of one value, which handles its errors. */
  constructor(task) {
    this.#task = task;
  }

  /** Run the task for a value as soon as it is free. A value that waits is replaced. Returns when none waits. */
  run(value) {
    this.#waiting = { value };
    this.#work ??= this.#runAll();
    return this.#work;
  }

  async #runAll() {
    while (this.#waiting !== null) {
      const { value } = this.#waiting;
      this.#waiting = null;
      await this.#task(value);
    }
    this.#work = null;
  }
}
