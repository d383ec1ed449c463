import { ImageError } from '@nodepool-builder/image-builder';
import {
  describeEnd,
  objectOf,
  runCommand,
  TEXT,
  withTimeout,
} from '@nodepool-builder/image-builder/internal';
import { JsonReader, signalOf } from '@nodepool-builder/image-builder/plugin';

/** A handler's arguments cannot be evaluated, or have the wrong type. */
export class HandlerArgumentError extends Error {
  override readonly name = 'HandlerArgumentError';
}

/** Seconds that Python may take. */
const TIMEOUT = 30;

/** Evaluates the expressions on stdin in the namespace in which `fileConfig` does. Streams become their names. */
const SCRIPT = `
import json, logging.handlers, sys
STREAMS = {sys.stdout: 'sys.stdout', sys.stderr: 'sys.stderr'}
def evaluate(text):
    try:
        value = eval(text, vars(logging))
        return {'json': json.dumps(value, default=lambda other: STREAMS.get(other, repr(other)), allow_nan=False)}
    except Exception as error:
        return {'error': f'{type(error).__name__}: {error}'}
print(json.dumps([evaluate(text) for text in json.load(sys.stdin)]))
`;

/** A value in JSON, or why there is none, for each expression. */
const RESULTS = new JsonReader({ type: 'array', items: objectOf({}, { json: TEXT, error: TEXT }) });

/**
 * Evaluates expressions with Python. Tuples and lists become arrays, and streams become their names. The returned
 * function takes one of the expressions and returns its value, or throws {@link HandlerArgumentError}.
 *
 * @throws ImageError if `python3` is not on PATH, or fails
 */
export async function evaluate(expressions: readonly string[]): Promise<(expression: string) => unknown> {
  if (expressions.length === 0) return () => undefined;
  let output = '';
  const end = await withTimeout(
    TIMEOUT,
    signalOf({}),
    (signal) =>
      runCommand('python3', ['-I', '-c', SCRIPT], {
        cwd: process.cwd(),
        env: process.env,
        input: JSON.stringify(expressions),
        signal,
        onLine: (line) => {
          output = line;
        },
      }),
    () => failed(`takes longer than ${TIMEOUT} s`),
  );
  if (end.exitCode !== 0) throw failed(describeEnd(end));
  const results = RESULTS.parse(output, (reason) => failed(`printed no result: ${reason}`));
  return (expression) => {
    const { json = '', error } = results[expressions.indexOf(expression)] ?? {};
    if (error !== undefined) throw new HandlerArgumentError(error);
    return JSON.parse(json);
  };
}

function failed(reason: string): ImageError {
  const what = `python3, which evaluates args and kwargs in the file of -l, ${reason}`;
  return new ImageError('command-failed', `${what}; simplify them, or write YAML`);
}
