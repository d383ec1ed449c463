/**
 * Runs a group of tasks concurrently. A failed task aborts the others. Returns or throws once all have ended.
 *
 * @throws the first error
 */
export async function runTaskGroup<Results extends readonly unknown[]>(
  signal: AbortSignal,
  tasks: { readonly [Index in keyof Results]: (signal: AbortSignal) => Promise<Results[Index]> },
): Promise<Results> {
  const failure = new AbortController();
  const both = AbortSignal.any([signal, failure.signal]);
  const results = await Promise.all(
    tasks.map((task) => task(both).catch((error: unknown) => failure.abort(error))),
  );
  failure.signal.throwIfAborted();
  return results as unknown as Results;
}
