import type { OperationOptions } from '@nodepool-builder/image-builder';

/** The signal of the options, or one that never aborts. */
export function signalOf({ signal }: OperationOptions): AbortSignal {
  return signal ?? new AbortController().signal;
}
