import { writeDurably } from '@nodepool-builder/image-builder/module-kit';
import { Option } from 'commander';

/** Options of commands that print JSON. */
export interface JsonOptions {
  readonly json?: true;
  /** File for the JSON, in addition to the output. */
  readonly jsonFile?: string;
}

/**
 * `--json-file`: for Zuul jobs, where both output streams of a command arrive as one. The file appears once it is
 * complete.
 */
export function jsonFileOption(): Option {
  return new Option('--json-file <file>', 'write the JSON to a file, apart from warnings');
}

/** Prints a value or writes it to a file, as the options ask. Without either option it does nothing. */
export async function writeJson(value: unknown, { json, jsonFile }: JsonOptions): Promise<void> {
  const text = JSON.stringify(value, null, 2);
  if (jsonFile !== undefined) await writeDurably(jsonFile, `${text}\n`, 0o644);
  if (json === true) console.log(text);
}
