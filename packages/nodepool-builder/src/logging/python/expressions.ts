import { ImageError } from '@nodepool-builder/image-builder';
import { describeEnd, runCommand } from '@nodepool-builder/image-builder/internal';

/** A handler's arguments cannot be evaluated, or have the wrong type. */
export class HandlerArgumentError extends Error {
  override readonly name = 'HandlerArgumentError';
}

/** Milliseconds that Python may take. */
const TIMEOUT = 30_000;

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

/**
 * Evaluates expressions with Python. Tuples and lists become arrays, and streams become their names. The returned
 * function takes one of the expressions and returns its value, or throws {@link HandlerArgumentError}.
 *
 * @throws ImageError if `python3` is not on PATH, or fails
 */
export async function evaluate(expressions: readonly string[]): Promise<(expression: string) => unknown> {
  if (expressions.length === 0) return () => undefined;
  let output = '';
  const end = await runCommand('python3', ['-I', '-c', SCRIPT], {
    cwd: process.cwd(),
    env: process.env,
    input: JSON.stringify(expressions),
    signal: AbortSignal.timeout(TIMEOUT),
    onLine: (line) => {
      output = line;
    },
  });
  if (end.exitCode !== 0) {
    const reason = `python3, which evaluates the file of -l, ${describeEnd(end)}; mend python3, or write YAML`;
    throw new ImageError('command-failed', reason);
  }
  const results = JSON.parse(output) as readonly { readonly json: string; readonly error?: string }[];
  return (expression) => {
    const { json = '', error } = results[expressions.indexOf(expression)] ?? {};
    if (error !== undefined) throw new HandlerArgumentError(error);
    return JSON.parse(json);
  };
}
