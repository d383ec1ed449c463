import type { OperationOptions } from './types.ts';

/** What an upload left in a provider that never became a whole image. */
export interface Leftover {
  /** Which upload left it. */
  readonly uploadId: string;
  /** What it is, for people: `image 5b1e… (saving)`. */
  readonly subject: string;
  /** When it last changed. */
  readonly changedAt: Date;
  /** Removes it, unless it has changed since it was listed. Returns whether it did. */
  remove(options?: OperationOptions): Promise<boolean>;
}
