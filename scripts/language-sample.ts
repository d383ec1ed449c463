/**
 * Draws random texts, to read them against the language rule in CONTRIBUTING.md:
 *
 *     npm run language-sample -- [--count 100] [--seed N] comments|messages|documents|titles
 *
 * `comments` draws from comments, log lines and error messages in the packages' sources. `documents` draws from the
 * sentences of all Markdown pages except changelogs. The seed is printed; the same seed draws the same texts from the
 * same commit.
 */
import { randomInt } from 'node:crypto';
import { glob, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';

interface Text {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

const ROOT = join(import.meta.dirname, '..');
const COMMENT = /\/\*\*?[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm;
const COMMENT_MARK = /^\s*(?:\/\*\*?|\*\/|\*|\/\/)|\*\/\s*$/gm;
const LITERAL = String.raw`\`[^\`]*\`|'(?:[^'\\\n]|\\.)*'|"[^"\n]*"`;
const MESSAGE = new RegExp(
  [
    String.raw`\b(?:logger|log|warn)(?:\.(?:debug|info|warn|error))?\(\s*(${LITERAL})`,
    String.raw`\b(?:new \w*Error|cloudError)\((?:\s*'[\w-]+',)?[^\`'"]*?(${LITERAL})`,
    String.raw`\b(?:message|reason|remedy)(?::| =)\s*(${LITERAL})`,
  ].join('|'),
  'g',
);
const TITLE = /\b(?:it|test)\(\s*('(?:[^'\\\n]|\\.)*'|"[^"\n]*"|`[^`]*`)/g;
/** A key of a table whose keys are titles. */
const TITLE_KEY = /^ {2}('[^'\n]+ [^'\n]+'): \{/gm;
const SENTENCE_END = /(?<=[.!?:])\s+(?=[A-Z`*[])|\n\s*(?:[-*]|\d+\.)\s/;

const { values, positionals } = parseArgs({
  options: { count: { type: 'string', default: '100' }, seed: { type: 'string' } },
  allowPositionals: true,
});
const readers: Readonly<Record<string, () => Promise<Text[]>>> = { comments, messages, documents, titles };
const read = readers[positionals[0] ?? ''];
if (read === undefined || positionals.length !== 1) {
  console.error(`language-sample: name what to draw from: ${Object.keys(readers).join(' or ')}`);
  process.exitCode = 1;
} else {
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  const texts = await read();
  const drawn = draw(texts, Number(values.count), seed);
  for (const { file, line, text } of drawn) console.log(`${file}:${line}\n    ${text}\n`);
  console.log(`${drawn.length} of ${texts.length} texts, --seed ${seed}`);
}

/** Reads the comments and messages of the sources. */
async function comments(): Promise<Text[]> {
  const texts: Text[] = [];
  for (const file of await files('packages/*/src/**/*.ts')) {
    const source = await readFile(file, 'utf8');
    for (const { index, 0: comment } of source.matchAll(COMMENT)) {
      texts.push(textAt(file, source, index, comment.replaceAll(COMMENT_MARK, '')));
    }
  }
  return texts;
}

/** Reads the log lines and error messages in the sources. */
async function messages(): Promise<Text[]> {
  const texts: Text[] = [];
  for (const file of await files('packages/*/src/**/*.ts')) {
    const source = await readFile(file, 'utf8');
    for (const match of source.matchAll(MESSAGE)) {
      const text = match[1] ?? match[2] ?? match[3] ?? '';
      if (text.includes(' ')) texts.push(textAt(file, source, match.index, text.slice(1, -1)));
    }
  }
  return texts;
}

/** Reads the sentences of the documents, without code blocks, tables and headings. */
async function documents(): Promise<Text[]> {
  const texts: Text[] = [];
  for (const file of await files('{*.md,docs/*.md,packages/*/*.md,examples/**/*.md}')) {
    if (file.endsWith('CHANGELOG.md') || file.includes('node_modules')) continue;
    const page = await readFile(file, 'utf8');
    for (const match of page.matchAll(/^(?![#|<]| {4}).+(?:\n(?![#|<]|```| {4}).+)*/gm)) {
      if (isInCodeBlock(page, match.index)) continue;
      for (const sentence of match[0].split(SENTENCE_END)) {
        if (sentence.includes(' '))
          texts.push(textAt(file, page, page.indexOf(sentence, match.index), sentence));
      }
    }
  }
  return texts;
}

/** Reads the titles of tests. Template literals keep their expressions. */
async function titles(): Promise<Text[]> {
  const texts: Text[] = [];
  for (const file of await files('{packages/*/test,packages/*/src/testing,test,examples}/**/*.ts')) {
    const source = await readFile(file, 'utf8');
    const patterns = source.includes('testSituations(') ? [TITLE, TITLE_KEY] : [TITLE];
    for (const match of patterns.flatMap((pattern) => [...source.matchAll(pattern)])) {
      texts.push(textAt(file, source, match.index, (match[1] ?? '').slice(1, -1)));
    }
  }
  return texts;
}

function isInCodeBlock(page: string, index: number): boolean {
  return (page.slice(0, index + 3).match(/^ *```/gm)?.length ?? 0) % 2 === 1;
}

async function files(pattern: string): Promise<string[]> {
  const found: string[] = [];
  for await (const file of glob(pattern, { cwd: ROOT })) found.push(join(ROOT, file));
  return found.toSorted();
}

function textAt(file: string, source: string, index: number, raw: string): Text {
  const text = raw.replaceAll(/\s+/g, ' ').trim();
  return { file: relative(ROOT, file), line: source.slice(0, index).split('\n').length, text };
}

/** Draws without replacement, with a linear congruential generator (constants: Numerical Recipes). */
function draw(texts: readonly Text[], count: number, seed: number): Text[] {
  const rest = [...texts];
  let state = seed >>> 0;
  return Array.from({ length: Math.min(count, rest.length) }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return rest.splice(Math.floor((state / 2 ** 32) * rest.length), 1);
  }).flat();
}
