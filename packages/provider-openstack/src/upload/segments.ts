/** How far one reading of the file has come. */
interface Cursor {
  readonly pieces: AsyncIterator<Buffer>;
  /** Read, and not given yet. */
  rest: Buffer;
  position: number;
}

const NOTHING = Buffer.alloc(0);

/**
 * Cuts one stream of a file into consecutive segments, so that the file is read once for all of them. Only a segment
 * that has to be sent again makes it begin anew.
 */
export class Segments {
  readonly #open: () => AsyncIterable<Buffer>;
  #cursor: Cursor | undefined;

  /** @param open begins the file anew. */
  constructor(open: () => AsyncIterable<Buffer>) {
    this.#open = open;
  }

  /** The bytes from `start` to before `end`; fewer if the file ends before. */
  async *read(start: number, end: number): AsyncGenerator<Buffer, void, undefined> {
    if (this.#cursor?.position !== start) this.#cursor = await this.#seek(start);
    yield* take(this.#cursor, end);
  }

  async #seek(start: number): Promise<Cursor> {
    await this.#cursor?.pieces.return?.();
    const pieces = this.#open()[Symbol.asyncIterator]();
    const cursor = { pieces, rest: NOTHING, position: 0 };
    const skipped = take(cursor, start);
    while ((await skipped.next()).done !== true);
    return cursor;
  }
}

async function* take(cursor: Cursor, end: number): AsyncGenerator<Buffer, void, undefined> {
  while (cursor.position < end) {
    if (cursor.rest.length === 0) {
      const { done, value } = await cursor.pieces.next();
      if (done === true) return;
      cursor.rest = value;
    }
    const part = cursor.rest.subarray(0, end - cursor.position);
    cursor.rest = cursor.rest.subarray(part.length);
    cursor.position += part.length;
    yield part;
  }
}
