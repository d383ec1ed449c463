// Not a unit test: it runs python3.
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { evaluate, HandlerArgumentError } from '../../../src/logging/python/expressions.ts';

const VALUES: readonly (readonly [expression: string, value: unknown])[] = [
  ["('/var/log/b.log', 'a', 10 * 1024 * 1024, 5)", ['/var/log/b.log', 'a', 10_485_760, 5]],
  ['(sys.stdout,)', ['sys.stdout']],
  ["(os.path.join('/var/log', 'b.log'), os.path.abspath('c'))", ['/var/log/b.log', resolve('c')]],
  ["os.environ['HOME']", process.env.HOME],
  ['(handlers.SysLogHandler.LOG_DAEMON, DEBUG)', [3, 10]],
  ["dict(filename='a', delay=True, encoding=None)", { filename: 'a', delay: true, encoding: null }],
  ['logging', undefined],
  ['(1,', undefined],
  ["float('nan')", undefined],
];

test('Python evaluates the arguments of a log handler', async () => {
  const valueOfExpression = await evaluate(VALUES.map(([expression]) => expression));
  for (const [expression, value] of VALUES) {
    if (value === undefined)
      assert.throws(() => valueOfExpression(expression), HandlerArgumentError, expression);
    else assert.deepEqual(valueOfExpression(expression), value, expression);
  }
});

test('the error for a file that needs Python says that Python is not installed', async (t) => {
  const { PATH } = process.env;
  t.after(() => {
    process.env.PATH = PATH;
  });
  process.env.PATH = '/nonexistent';
  await assert.rejects(
    evaluate(['()']),
    /the command "python3" is not installed, or not on PATH; install it/,
  );
});

test('the error for a Python that fails, or prints too much, names it and the remedy', async () => {
  await assert.rejects(
    evaluate(["__import__('os')._exit(3)"]),
    /^ImageError: python3, .* ended with exit code 3.*; .*write YAML$/,
  );
  await assert.rejects(
    evaluate(["'a' * 200_000"]),
    /^ImageError: python3, .* printed no result: it is not JSON.*; .*write YAML$/,
  );
});
