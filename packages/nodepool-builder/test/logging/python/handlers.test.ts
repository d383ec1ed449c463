import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HandlerArgumentError, parseLiteral } from '../../../src/logging/python/handlers.ts';

const literals: readonly (readonly [text: string, value: unknown])[] = [
  ['(sys.stdout,)', ['sys.stdout']],
  [
    "('/var/log/nodepool/builder-debug.log', 'H', 8, 30,)",
    ['/var/log/nodepool/builder-debug.log', 'H', 8, 30],
  ],
  ['()', []],
  ['[1, -2, 0.5]', [1, -2, 0.5]],
  ['(True, False, None)', [true, false, null]],
  ["('alone' ,)", ['alone']],
  [String.raw`("a\"b", 'c\'d', '\\g', '\d')`, ['a"b', "c'd", '\\g', '\\d']],
  [String.raw`('a\tb', "c\nd", '\r')`, ['a\tb', 'c\nd', '\r']],
  ["('a\\\nb',)", ['ab']],
  [String.raw`(r'C:\new', u'text')`, ['C:\\new', 'text']],
  ["('''it's''',)", ["it's"]],
  [
    "(('localhost', 514), handlers.SysLogHandler.LOG_USER)",
    [['localhost', 514], 'handlers.SysLogHandler.LOG_USER'],
  ],
  ["{'filename': 'a', 'maxBytes': 5}", { filename: 'a', maxBytes: 5 }],
  ['{}', {}],
];

const invalid: readonly string[] = [
  "('a",
  '(1, 2',
  '',
  '(1 2)',
  "(open('x'),)",
  "('a' + 'b',)",
  '(1,) or 2',
  "{'a' 1}",
  '(constructor,)',
  `('${'\\\\'.repeat(50)}`,
];

describe('a literal of Python', () => {
  for (const [text, value] of literals) {
    it(`${text} is parsed`, () => assert.deepEqual(parseLiteral(text), value));
  }
  for (const text of invalid) {
    it(`${text || 'empty'} is rejected`, () => {
      assert.throws(() => parseLiteral(text), HandlerArgumentError);
    });
  }
});
