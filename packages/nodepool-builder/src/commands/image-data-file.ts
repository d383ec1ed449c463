import { createReadStream } from 'node:fs';
import type { ExportedDocument, ExportedState } from '@nodepool-builder/image-manager';

/** Line of the file before its documents. Each of them is on its own line, so that they are read one by one. */
const FIRST = '  "documents": [';

/** Line after the documents. */
const LAST = '  ]';

/** Yields the text of an export: JSON, with the documents at its end. */
export async function* formatExport(
  state: ExportedState,
  documents: AsyncIterable<ExportedDocument>,
): AsyncGenerator<string> {
  const records = JSON.stringify(state, null, 2);
  yield records.slice(0, -'\n}'.length);
  let isFirst = true;
  for await (const document of documents) {
    yield `${isFirst ? `,\n${FIRST}` : ','}\n    ${JSON.stringify(document)}`;
    isFirst = false;
  }
  yield isFirst ? '\n}\n' : `\n${LAST}\n}\n`;
}

/**
 * Reads an export. Its documents are read while they are iterated. JSON with other line breaks is read as a whole.
 *
 * @throws Error if the file cannot be read or is not JSON, also during the iteration
 */
export async function readExport(
  path: string,
): Promise<{ readonly state: unknown; readonly documents: AsyncIterable<unknown> }> {
  const lines = linesOf(path);
  try {
    const records: string[] = [];
    for (;;) {
      const { value: line, done } = await lines.next();
      if (done === true) return { state: JSON.parse(records.join('\n')), documents: noDocuments() };
      if (line === FIRST) break;
      records.push(line);
    }
    const last = records.pop()?.replace(/,$/, '') ?? '';
    return { state: JSON.parse([...records, last, '}'].join('\n')), documents: parsed(lines) };
  } catch (error) {
    await lines.return(undefined);
    throw error;
  }
}

/** Unlike `readline`, keeps only one line and one chunk in memory. */
async function* linesOf(path: string): AsyncGenerator<string, undefined> {
  let parts: string[] = [];
  for await (const chunk of createReadStream(path, 'utf8') as AsyncIterable<string>) {
    const [first = '', ...more] = chunk.split('\n');
    parts.push(first);
    for (const part of more) {
      yield parts.join('');
      parts = [part];
    }
  }
  yield parts.join('');
  return undefined;
}

async function* noDocuments(): AsyncGenerator<never> {
  // If there are documents, they are in the state.
}

async function* parsed(lines: AsyncGenerator<string, undefined>): AsyncGenerator {
  try {
    for (;;) {
      const { value: line, done } = await lines.next();
      if (done === true) throw new Error('the file ends before the end of its documents');
      if (line === LAST) return;
      yield JSON.parse(line.replace(/,$/, ''));
    }
  } finally {
    await lines.return(undefined);
  }
}
