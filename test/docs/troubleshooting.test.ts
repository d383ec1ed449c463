import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

const page = await readPage('docs/troubleshooting.md');
const sources = await readSources();

/** Sources of all packages as one text, with concatenated strings joined. */
async function readSources(): Promise<string> {
  const texts: string[] = [];
  for await (const path of glob('packages/*/src/**/*.ts', { cwd: ROOT })) {
    texts.push(await readFile(join(ROOT, path), 'utf8'));
  }
  return texts
    .join('\n')
    .replaceAll(/['"`] \+\s+['"`]/g, '')
    .replaceAll("\\'", "'");
}

/** Returns the constant parts of a message, which the sources contain literally. */
function constantParts(message: string): string[] {
  return message
    .split(/…|; |: /)
    .map((part) => part.replaceAll(/^[\s"(),;?]+|[\s"(),;?]+$/g, ''))
    .filter((part) => part.length > 3);
}

test('docs/troubleshooting.md quotes messages that exist in the sources', () => {
  const messages = codeBlocks(page, 'text').map((block) => block.trim());
  assert.ok(messages.length >= 25);
  const missing = messages.flatMap((message) => {
    const parts = constantParts(message);
    assert.ok(
      parts.some((part) => part.length >= 10),
      `too few constant words: ${message}`,
    );
    return parts.filter((part) => !sources.includes(part)).map((part) => `${message}: ${part}`);
  });
  assert.deepEqual(missing, []);
});

test('docs/troubleshooting.md has a message, a cause and a remedy for each symptom', () => {
  const entries = page.split(/^### /m).slice(1);
  for (const entry of entries) {
    assert.match(entry, /^.+\n\n```text\n.+\n```\n\n\*\*Cause:\*\* .+\n(.+\n)*\n\*\*Remedy:\*\* /, entry);
  }
});
