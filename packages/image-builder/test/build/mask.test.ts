import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMask } from '../../src/build/mask.ts';

const CASES: readonly (readonly [what: string, secrets: readonly string[], text: string, shown: string])[] = [
  ['a secret wherever it stands', ['hunter2'], 'x=hunter2hunter2 hunter', 'x=****** hunter'],
  ['the longer of two first', ['pass', 'password'], 'password, pass', '***, ***'],
  [
    'each line of one that has several',
    ['-----BEGIN\n  MIIE\r\nc3Vy\n'],
    '-----BEGIN MIIE c3Vy',
    '*** *** ***',
  ],
  ['what a shell makes of quotes', ["it's me"], String.raw`+ token='it'\''s me'`, "+ token='***'"],
  ['what means something in an expression', ['a.c$'], 'abc$ a.c$', 'abc$ ***'],
];

for (const [what, secrets, text, shown] of CASES) {
  test(`hides ${what}`, () => assert.equal(createMask(secrets)(text), shown));
}

test('leaves alone what is shorter than four characters, and all if there is no secret', () => {
  assert.equal(createMask(['yes', ''])('yes'), 'yes');
  assert.equal(createMask()('hunter2'), 'hunter2');
});
