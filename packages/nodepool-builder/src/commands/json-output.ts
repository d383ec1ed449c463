import { writeDurably } from '@nodepool-builder/image-builder';
import { Option } from 'commander';

/** Options of a command that prints JSON on request. */
export interface JsonOptions {
  readonly json?: true;
  /** File that gets the JSON, in addition to any output. */
  readonly jsonFile?: string;
}

/**
 * `--json-file`: for programs in a Zuul job, which get both output streams as one.
 * The file appears once the command has done its work, and never half-written.
 */
export function jsonFileOption(): Option {
  return new Option('--json-file <file>', 'write the JSON to a file, too: it never mixes with warnings');
}

/** Prints a value or writes it to a file, as the options ask. Without either option it does nothing. */
export async function writeJson(value: unknown, { json, jsonFile }: JsonOptions): Promise<void> {
  const text = JSON.stringify(value, null, 2);
  if (jsonFile !== undefined) await writeDurably(jsonFile, `${text}\n`, 0o644);
  if (json === true) console.log(text);
}
