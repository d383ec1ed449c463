import { readFile } from 'node:fs/promises';
import { ZuulError } from '../api/zuul-error.ts';

/**
 * What a file holds, without the line end that editors add. It is read at each use, so that a secret can be
 * exchanged without a restart.
 *
 * @throws ZuulError `credentials-unusable`
 */
export async function readSecret(path: string): Promise<string> {
  const content = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw unusable(`${(cause as Error).message}; correct the path or its permissions`, cause);
  });
  const secret = content.replace(/\r?\n$/, '');
  if (secret === '') throw unusable(`${path} is empty; write into it what Zuul is to know us by`);
  return secret;
}

function unusable(reason: string, cause?: unknown): ZuulError {
  return new ZuulError(
    'credentials-unusable',
    `a file to authenticate to the Zuul API with cannot be used: ${reason}`,
    { cause },
  );
}
