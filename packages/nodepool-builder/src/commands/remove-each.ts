import { CommandError } from './command-error.ts';
import { type JsonOptions, writeJson } from './json-output.ts';

/** Something that a command removes. */
export interface Removable {
  /** For people. */
  readonly subject: string;
  /** The keys of its JSON. */
  readonly record: Readonly<Record<string, string | null>>;
  /** Returns false if it is better left alone by now, or gone. */
  readonly remove: (signal: AbortSignal) => Promise<boolean>;
}

/** How {@link removeEach} goes about it. */
export interface RemovalOptions extends JsonOptions {
  /** Whether to say only what would be removed. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/**
 * Removes one thing after the other, and prints what became of each: a line, or all as JSON in the end. What cannot be
 * removed does not keep it from the others.
 *
 * @throws CommandError at the end, if something could not be removed
 */
export async function removeEach(
  things: readonly Removable[],
  { dryRun, signal, ...output }: RemovalOptions,
): Promise<void> {
  const records: object[] = [];
  let failures = 0;
  const tell = (action: string, { subject, record }: Removable, error: string | null = null): void => {
    records.push({ ...record, action, error });
    if (error !== null) console.error(`nodepool-builder: ${subject}: ${error}`);
    else if (output.json !== true) console.log(`${action} ${subject}`);
  };
  for (const thing of things) {
    if (signal.aborted) break;
    try {
      if (dryRun) tell('would delete', thing);
      else if (await thing.remove(signal)) tell('deleted', thing);
    } catch (error) {
      failures += 1;
      tell('failed', thing, error instanceof Error ? error.message : String(error));
    }
  }
  await writeJson(records, output);
  signal.throwIfAborted();
  if (failures > 0) throw new CommandError(`${failures} of ${things.length} could not be deleted`);
}
