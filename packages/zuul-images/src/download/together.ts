/**
 * Runs works at the same time. When one fails the others are aborted; ends when none runs any more.
 *
 * @throws what the first one that failed did
 */
export async function together<Results extends readonly unknown[]>(
  signal: AbortSignal,
  works: { readonly [Index in keyof Results]: (signal: AbortSignal) => Promise<Results[Index]> },
): Promise<Results> {
  const failure = new AbortController();
  const both = AbortSignal.any([signal, failure.signal]);
  const results = await Promise.all(
    works.map((work) => work(both).catch((error: unknown) => failure.abort(error))),
  );
  failure.signal.throwIfAborted();
  return results as unknown as Results;
}
