import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { evaluate, HandlerArgumentError } from '../../../src/logging/python/expression.ts';

/** Prints the values of expressions as `fileConfig` of Python evaluates them, streams by their names. */
const PYTHON = `
import json, logging, logging.config, sys
def plain(value):
    return {sys.stdout: 'sys.stdout', sys.stderr: 'sys.stderr'}[value]
values = [eval(text, vars(logging)) for text in json.load(sys.stdin)]
print(json.dumps(values, default=plain))
`;

const EXPRESSIONS: readonly string[] = [
  '(sys.stdout,)',
  "('/var/log/nodepool/builder-debug.log', 'H', 8, 30,)",
  '()',
  '[1, -2, 0.5, .5, 5., 1e3, 1_000, 0x1F, 0o17, 0b11, 1_0.5e-1]',
  '(True, False, None)',
  "('alone' ,)",
  '("alone")',
  "'a', 1",
  "('a' 'b' \"c\", 'd'\n  'e')",
  '("/l", "a", 10 * 1024 * 1024, 2)',
  '(10 + 2 * 3 - 4, (10 + 2) * 3, --1)',
  "'/var/log/' + 'a' + '.log'",
  "(os.path.join('/var/log', 'nodepool', 'b.log'), os.path.join('/a/', 'b'), os.path.join('/a', '/b'), os.path.join('a', ''))",
  "(os.environ['HOME'], os.environ.get('NOT_SET', 'b'), os.getenv('HOME'))",
  "os.path.expanduser('~/builder.log')",
  "{'filename': 'a', 'maxBytes': 5 * 2, }",
  "dict(filename='a', maxBytes=5,)",
  '{}',
  '(1, # a comment\n 2)',
  String.raw`("a\"b", 'c\'d', '\\g', 'a\tb', "c\nd", '\r', '\x41\u00e9')`,
  "('a\\\nb',)",
  String.raw`(r'C:\new', u'text')`,
  "('''it's''', \"\"\"a\nb\"\"\")",
];

const REFUSED: readonly (readonly [text: string, reason: RegExp])[] = [
  ["('a", /'a/],
  ['(1, 2', /it ends too early/],
  ['', /it ends too early/],
  ['(1 2)', /"2" is not understood/],
  ["(open('x'),)", /the name open is not known/],
  ["(__import__('os'),)", /the name __import__ is not known/],
  ["os.system('true')", /the name os\.system is not known/],
  ["(os.environ['NO_SUCH_NAME'],)", /a variable of os\.environ is not set/],
  ['(handlers.constructor,)', /the name handlers\.constructor is not known/],
  ['(constructor,)', /the name constructor is not known/],
  ["''.__class__", /"\.__class__" is not understood/],
  ['{}.constructor', /"\.constructor" is not understood/],
  ["{'a' 1}", /"1" is not understood/],
  ["b'a'", /b'a' *" is not understood/],
  ["f'{x}'", /is not understood/],
  ['lambda: 1', /the name lambda is not known/],
  ['[x for x in y]', /the name x is not known/],
  ['010', /"010" is not understood/],
  ['1 / 0', /"\/" is not understood/],
  ["'a' + 1", /"\+" is used with what is not a number/],
  ["os.path.join('a', 1)", /something else is used as text/],
  ['(5)(1)', /"\(" is not understood/],
  ['('.repeat(5000), /nested too deeply/],
  ['-'.repeat(5000), /nested too deeply/],
  ['€', /"€" is not understood/],
  [`('${'\\\\'.repeat(50)}`, /is not understood/],
];

describe('an expression of a logging configuration', () => {
  it('an expression in a logging configuration has the value that Python computes', () => {
    const input = JSON.stringify(EXPRESSIONS);
    const output = execFileSync('/usr/bin/python3', ['-c', PYTHON], { input, encoding: 'utf8' });
    const expected = JSON.parse(output) as readonly unknown[];
    for (const [index, text] of EXPRESSIONS.entries())
      assert.deepEqual(evaluate(text), expected[index], text);
  });

  for (const [text, reason] of REFUSED) {
    it(`an expression in a logging configuration is rejected at ${text.slice(0, 40) || 'its empty text'}`, () => {
      assert.throws(
        () => evaluate(text),
        (error) => error instanceof HandlerArgumentError && reason.test(error.message),
      );
    });
  }
});
