import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMask, visible } from '../../src/build/mask.ts';

const CASES: readonly (readonly [what: string, secrets: readonly string[], text: string, shown: string])[] = [
  ['a secret wherever it occurs', ['hunter2'], 'x=hunter2hunter2 hunter', 'x=****** hunter'],
  ['the longer of two secrets first', ['pass', 'password'], 'password, pass', '***, ***'],
  [
    'each line of a secret that has several',
    ['-----BEGIN\n  MIIE\r\nc3Vy\n'],
    '-----BEGIN MIIE c3Vy',
    '*** *** ***',
  ],
  ['a secret that a shell has quoted', ["it's me"], String.raw`+ token='it'\''s me'`, "+ token='***'"],
  [
    'a secret that a shell declares',
    ['say "$HOME"'],
    String.raw`declare -x A="say \"\$HOME\""`,
    'declare -x A="***"',
  ],
  ['a secret that a shell escapes', ['a b;c'], String.raw`a\ b\;c`, '***'],
  [
    'a secret with control characters and other scripts',
    ['tab\tpäss'],
    String.raw`$'tab\tp\303\244ss'`,
    "$'***'",
  ],
  ['a secret with characters of regular expressions', ['a.c$'], 'abc$ a.c$', 'abc$ ***'],
];

for (const [what, secrets, text, shown] of CASES) {
  test(`the mask hides ${what}`, () => assert.equal(createMask(secrets)(text), shown));
}

test('the mask keeps secrets of fewer than four characters, and all text without secrets', () => {
  assert.equal(createMask(['yes', ''])('yes'), 'yes');
  assert.equal(createMask()('hunter2'), 'hunter2');
});

const TEXTS: Readonly<Record<string, readonly [text: string, shown: string]>> = {
  'coloured text': ['\u001b[31mred\u001b[0m', String.raw`\x1b[31mred\x1b[0m`],
  'a window title': ['\u001b]0;title\u0007', String.raw`\x1b]0;title\x07`],
  'text with a C1 control': ['\u009b2J', String.raw`\x9b2J`],
  'text with NUL, backspace and DEL': ['a\0\b\u007f', String.raw`a\x00\x08\x7f`],
  'text with line ends': ['a\r\nb\u2028c', String.raw`a\x0d\x0ab\u2028c`],
  'text that is written from right to left': ['a\u202eb\u2066c', String.raw`a\u202eb\u2066c`],
  'text with tabs and other scripts': ['\ta ü 漢 🙂', '\ta ü 漢 🙂'],
};

for (const [what, [text, shown]] of Object.entries(TEXTS)) {
  test(`control characters are made visible in ${what}`, () => assert.equal(visible(text), shown));
}
