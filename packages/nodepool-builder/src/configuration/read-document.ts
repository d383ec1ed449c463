import { readFile } from 'node:fs/promises';
import { ConfigurationError, type Fault } from './fault.ts';
import { parseYaml, type YamlDocument, YamlError, type YamlOptions } from './yaml-document.ts';

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
  try {
    return parseYaml(await readFile(file, 'utf8'), options);
  } catch (error) {
    throw new ConfigurationError(file, [faultOf(error as Error, option)], { cause: error });
  }
}

function faultOf(error: Error, option: string): Fault {
  if (error instanceof YamlError) {
    const remedy = /\btab\b/.test(error.message) ? 'indent with spaces' : 'correct the YAML there';
    return { ...error.position, severity: 'error', reason: error.message, remedy };
  }
  return {
    line: 1,
    column: 1,
    severity: 'error',
    reason: `the file cannot be read: ${error.message}`,
    remedy: `name the right one with ${option} FILE`,
  };
}
