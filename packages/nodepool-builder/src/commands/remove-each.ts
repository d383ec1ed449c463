import { CommandError } from './command-error.ts';
import { type JsonOptions, writeJson } from './json-output.ts';

/** Something to remove. */
export interface Removable {
  /** For people. */
  readonly subject: string;
  /** Its JSON. */
  readonly record: Readonly<Record<string, string | null>>;
  /** Resolves with false if it is gone, or has changed and has to stay. */
  readonly remove: (signal: AbortSignal) => Promise<boolean>;
}

/** Settings of {@link removeEach}. */
export interface RemovalOptions extends JsonOptions {
  /** Only print what would be removed. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/**
 * Removes one thing after the other, and prints the result: a line for each, or JSON for all at the end. After a failure,
 * it goes on with the others.
 *
 * @throws CommandError at the end, if one of them could not be removed
 */
export async function removeEach(
  things: readonly Removable[],
  { dryRun, signal, ...output }: RemovalOptions,
): Promise<void> {
  const records: object[] = [];
  let failures = 0;
  const report = (action: string, { subject, record }: Removable, error: string | null = null): void => {
    records.push({ ...record, action, error });
    if (error !== null) console.error(`nodepool-builder: ${subject}: ${error}`);
    else if (output.json !== true) console.log(`${action} ${subject}`);
  };
  for (const thing of things) {
    if (signal.aborted) break;
    try {
      if (dryRun) report('would delete', thing);
      else if (await thing.remove(signal)) report('deleted', thing);
    } catch (error) {
      failures += 1;
      report('failed', thing, error instanceof Error ? error.message : String(error));
    }
  }
  await writeJson(records, output);
  signal.throwIfAborted();
  if (failures > 0) throw new CommandError(`${failures} of ${things.length} could not be deleted`);
}
