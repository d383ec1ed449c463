import type { HttpAnswer } from './http-client.ts';

/** Enough for the pages of a few images. */
const MOST_ANSWERS = 64;

/** Milliseconds by which `Last-Modified` must lie before `Date`: what changes in the same second does not show in it. */
const SETTLED = 2_000;

interface Kept {
  readonly answer: HttpAnswer;
  readonly condition: Readonly<Record<string, string>>;
}

/** Remembers the answers that came with a validator, so that the server can say that nothing has changed. */
export class AnswerCache {
  readonly #kept = new Map<string, Kept>();

  /** The headers that ask for an answer only if it is another than the last one. */
  condition(url: string): Readonly<Record<string, string>> {
    return this.#kept.get(url)?.condition ?? {};
  }

  /** The answer that counts: the one that came, or for a 304 the one that is kept. */
  take(url: string, answer: HttpAnswer): HttpAnswer {
    if (answer.status === 304) return this.#kept.get(url)?.answer ?? answer;
    this.#kept.delete(url);
    const condition = answer.status === 200 ? conditionOf(answer) : undefined;
    if (condition === undefined) return answer;
    this.#kept.set(url, { answer, condition });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_ANSWERS && oldest !== undefined) this.#kept.delete(oldest);
    return answer;
  }
}

function conditionOf({ headers }: HttpAnswer): Record<string, string> | undefined {
  const { etag, date, 'last-modified': modified } = headers;
  if (etag !== undefined) return { 'if-none-match': etag };
  if (modified === undefined || date === undefined) return undefined;
  // RFC 9110, 8.8.2.2
  return Date.parse(date) - Date.parse(modified) >= SETTLED ? { 'if-modified-since': modified } : undefined;
}
