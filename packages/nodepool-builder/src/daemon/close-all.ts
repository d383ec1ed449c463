/** Closes a part of a program. */
export type Closer = () => unknown;

/** Closes all parts in reverse order, and then throws the first error. (Node 22 lacks AsyncDisposableStack.) */
export async function closeAll(closers: readonly Closer[]): Promise<void> {
  const errors: unknown[] = [];
  for (const close of closers.toReversed()) {
    try {
      await close();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
