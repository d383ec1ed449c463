import { readFile } from 'node:fs/promises';
import { ConfigurationError } from './fault.ts';
import { type Position, parseYaml, type YamlDocument, YamlError, type YamlOptions } from './yaml-document.ts';

/**
 * Reads a file of YAML.
 *
 * @param option which names such a file on the command line: `-c`
 * @throws ConfigurationError for a file that cannot be read, or is no YAML
 */
export async function readDocument(
  file: string,
  option: string,
  options?: YamlOptions,
): Promise<YamlDocument> {
  return parseDocument(file, await readText(file, option), options);
}

/**
 * Reads a file.
 *
 * @param option which names such a file on the command line: `-c`
 * @throws ConfigurationError if it cannot be read
 */
export async function readText(file: string, option: string): Promise<string> {
  return await readFile(file, 'utf8').catch((error: Error) => {
    const reason = `the file cannot be read: ${error.message}`;
    throw refused(file, { line: 1, column: 1 }, reason, `name the right one with ${option} FILE`, error);
  });
}

/**
 * Reads a text of YAML.
 *
 * @param file where it comes from, for the message
 * @throws ConfigurationError if it is none
 */
export function parseDocument(file: string, text: string, options?: YamlOptions): YamlDocument {
  try {
    return parseYaml(text, options);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    const remedy = /\btab\b/.test(error.message) ? 'indent with spaces' : 'correct the YAML there';
    throw refused(file, error.position, error.message, remedy, error);
  }
}

function refused(
  file: string,
  position: Position,
  reason: string,
  remedy: string,
  cause: Error,
): ConfigurationError {
  return new ConfigurationError(file, [{ ...position, severity: 'error', reason, remedy }], { cause });
}
