import { type HttpAnswer, parseJson } from '@nodepool-builder/image-builder/module-kit';
import { ZuulError } from './zuul-error.ts';

/** `application/json`, with or without parameters. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/**
 * Reads the JSON of an answer. Its content type tells it from a login page with status 200.
 *
 * @param request names the API, the method and the path
 * @throws ZuulError `invalid-answer`
 */
export function parseAnswer<T>(request: string, answer: HttpAnswer, read: (value: unknown) => T): T {
  const type = answer.headers['content-type'] ?? 'no content type';
  if (!JSON_TYPE.test(type)) {
    throw invalid(
      `${request}: the answer is ${type.replace(/;.*/s, '')} where application/json was due`,
      'check the URL, and whether a login page lies before it',
    );
  }
  try {
    return read(parseJson(answer.body));
  } catch (error) {
    throw invalid(
      `${request}: the answer is not as expected: ${(error as Error).message}`,
      'check that the URL is that of the service',
    );
  }
}

function invalid(fault: string, remedy: string): ZuulError {
  return new ZuulError('invalid-answer', `${fault}; ${remedy}`);
}
