import type { OperationOptions } from './types.ts';

/** Partial image or data of an interrupted upload in a provider. */
export interface Leftover {
  /** Id of its upload. */
  readonly uploadId: string;
  /** Description for people: `image 5b1e… (saving)`. */
  readonly subject: string;
  /** Time of its last change. */
  readonly changedAt: Date;
  /** Removes it, unless it has changed since it was listed. Returns whether it was removed. */
  remove(options?: OperationOptions): Promise<boolean>;
}
