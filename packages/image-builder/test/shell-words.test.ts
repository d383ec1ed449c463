import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { shellWords } from '../src/shell-words.ts';

const TEXTS = [
  '',
  ' \t\n ',
  'debian-minimal vm',
  '  debian-minimal\n  vm  simple-init ',
  `'one word' two`,
  `"one word" two`,
  `pre'fix ed'"and more"post`,
  `one\\ word two`,
  `"a \\"quoted\\" word" "a \\$ \\\\ \\\` \\x"`,
  `'no \\escape' 'nor "quotes"'`,
  `"it's" ''`,
  `\\'`,
  'ümläut ✓',
];

for (const text of TEXTS) {
  test(`the text ${JSON.stringify(text)} is split as a shell does`, () => {
    const words = execFileSync(
      'sh',
      ['-c', `for word in ${text.replaceAll(/\s+/g, ' ')}; do printf '%s\\0' "$word"; done`],
      {
        encoding: 'utf8',
      },
    );
    assert.deepEqual(shellWords(text, 'the text'), words.split('\0').slice(0, -1));
  });
}

for (const text of [`one 'two`, `one "two`, `"two\\"`, 'one\\', `'one'"`]) {
  test(`the text ${JSON.stringify(text)} with an open quote is rejected`, () => {
    assert.throws(
      () => shellWords(text, 'the text'),
      withCode('invalid-configuration', /quote or backslash/),
    );
  });
}
