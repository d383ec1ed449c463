import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { evaluate } from '../../../src/logging/python/expression.ts';
import { HandlerArgumentError } from '../../../src/logging/python/operations.ts';

/** Script that prints expressions as Python's `fileConfig` evaluates them, and streams by name. */
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
  '(10 + 2 * 3 - 4, (10 + 2) * 3, 2 ** 3 ** 2, -2 ** 2, 2 ** -1, 7 // 2, -7 // 2, -7 % 3, 7 % -3, 1 / 4, --1, +2)',
  "('/var/log/' + 'a' + '.log', 'a' * 3, 2 * 'ab', ('a',) + ('b', 1), [1] + [2])",
  "('%s/%s.log' % ('/var/log', 'nodepool'), '%s' % 'a', '%d%%' % 5, '%05d|%5s' % (42, 'a'), '%(a)s' % {'a': 1})",
  "(os.path.join('/var/log', 'nodepool', 'b.log'), os.path.join('/a/', 'b'), os.path.join('/a', '/b'), os.path.join('a', ''))",
  "(os.path.dirname('/a/b'), os.path.basename('/a/b'), os.path.normpath('/a/../b'), os.path.abspath('/a/./b'))",
  "(os.environ['HOME'], os.environ.get('NOT_SET', 'b'), os.getenv('HOME'), os.environ.get('NOT_SET') or 'c')",
  "os.path.expanduser('~/builder.log')",
  '(handlers.SysLogHandler.LOG_DAEMON, handlers.SysLogHandler.LOG_LOCAL7, handlers.SYSLOG_UDP_PORT, DEBUG, ERROR)',
  "('{}/{}'.format('a', 1), '{0}{0}{{}}'.format('a'), '{b}'.format(b=2), '-'.join(['a', 'b']), 'A'.lower(), ' a '.strip())",
  "{'filename': 'a', 'maxBytes': 5 * 2, }",
  "dict(filename='a', maxBytes=5,)",
  '{}',
  "(str(5) + 'a', int('5'), int(2.5))",
  "('a', 'b')[1]",
  "{'a': 1}['a']",
  '(1, # a comment\n 2)',
  String.raw`("a\"b", 'c\'d', '\\g', 'a\tb', "c\nd", '\r', '\x41\u00e9')`,
  "('a\\\nb',)",
  String.raw`(r'C:\new', u'text')`,
  "('''it's''', \"\"\"a\nb\"\"\")",
  "(('localhost', 514), handlers.SysLogHandler.LOG_USER)",
  '(10 << 20, 5 >> 1, 6 & 3 | 8, 5 ^ 1, 1 | 2 + 4, -8 >> 1, 2 ** 40 | 1)',
  "'log-' + time.strftime('%Y') + '.log'",
  "(not '', '' or 'a', 'a' and 'b', None or 5)",
];

const REFUSED: readonly (readonly [text: string, reason: RegExp])[] = [
  ["('a", /'a/],
  ['(1, 2', /it ends too early/],
  ['', /it ends too early/],
  ['(1 2)', /"2" is not understood/],
  ["(open('x'),)", /the name open is not known/],
  ["(__import__('os'),)", /the name __import__ is not known/],
  ["os.system('true')", /os has no system here/],
  ["(os.environ['NO_SUCH_NAME'],)", /os\.environ has no NO_SUCH_NAME here/],
  ['(handlers.constructor,)', /handlers has no constructor here/],
  ['(constructor,)', /the name constructor is not known/],
  ["''.__class__", /text has no __class__ here/],
  ['{}.constructor', /has no constructor here/],
  ['os.path.join.constructor', /has no constructor here/],
  ["{'a' 1}", /"1" is not understood/],
  ["b'a'", /b'a' *" is not understood/],
  ["f'{x}'", /is not understood/],
  ['lambda: 1', /the name lambda is not known/],
  ['[x for x in y]', /the name x is not known/],
  ['010', /"010" is not understood/],
  ['1 / 0', /divides by zero/],
  ['1 << 1000', /"<<" is used with 1 and 1000/],
  ['1.5 | 1', /"\|" is used with 1.5 and 1/],
  ["'a' + 1", /a number is used as text/],
  ["1 + 'a'", /"\+" is used with text/],
  ["'a' * 10 ** 9", /longer than 65536 characters/],
  ["'%s%s' % 'a'", /"%s" lacks a value/],
  ["'%q' % 'a'", /"%q" is not understood/],
  ['(5)(1)', /a number is called like a function/],
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
