import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LiteralError, type PythonValue, parseLiteral } from '../../../src/logging/python/literal.ts';

const literals: readonly (readonly [text: string, value: PythonValue])[] = [
  ['(sys.stdout,)', [{ name: 'sys.stdout' }]],
  [
    "('/var/log/nodepool/builder-debug.log', 'H', 8, 30,)",
    ['/var/log/nodepool/builder-debug.log', 'H', 8, 30],
  ],
  ['()', []],
  ['[1, -2, +3, 1_000, .5, 1e3]', [1, -2, 3, 1000, 0.5, 1000]],
  ['(True, False, None)', [true, false, null]],
  ["('alone')", 'alone'],
  ["('alone' ,)", ['alone']],
  [String.raw`("a\"b", 'c\'d', 'e\nf', '\\g', '\d')`, ['a"b', "c'd", 'e\nf', '\\g', '\\d']],
  [String.raw`(r'C:\new', u'text')`, ['C:\\new', 'text']],
  ["('''it's''',)", ["it's"]],
  [
    "(('localhost', 514), handlers.SysLogHandler.LOG_USER)",
    [['localhost', 514], { name: 'handlers.SysLogHandler.LOG_USER' }],
  ],
  [
    "{'filename': 'a', 'maxBytes': 5}",
    new Map<PythonValue, PythonValue>([
      ['filename', 'a'],
      ['maxBytes', 5],
    ]),
  ],
  ['{}', new Map()],
];

const faults: readonly (readonly [text: string, reason: RegExp])[] = [
  ["('a", /a quote is not closed/],
  ['(1, 2', /unexpected end/],
  ['', /unexpected end/],
  ['(1 2)', /unexpected "2"/],
  ["(open('x'),)", /unexpected "\("/],
  ["('a' + 'b',)", /unexpected "\+"/],
  ['(1,) or 2', /unexpected "o"/],
  ["{'a' 1}", /unexpected "1"/],
  ['(,)', /unexpected ","/],
];

describe('a literal of Python', () => {
  for (const [text, value] of literals) {
    it(`${text} is parsed`, () => assert.deepEqual(parseLiteral(text), value));
  }
  for (const [text, reason] of faults) {
    it(`${text} is rejected`, () => {
      assert.throws(
        () => parseLiteral(text),
        (error) => error instanceof LiteralError && reason.test(error.message),
      );
    });
  }
});
