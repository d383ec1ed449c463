import { ImageError } from '@nodepool-builder/image-builder';
import { type ImageValidation, shellWords } from '@nodepool-builder/image-builder/module-kit';
import { programPath } from './program-path.ts';
import type { ValidationSource } from './source.ts';

/** Why a `validate` cannot be carried out, and below which of its keys that lies. */
export interface ValidationFault {
  readonly key: '' | '/hook' | '/boot/expect';
  readonly reason: string;
  readonly remedy: string;
}

/** What is wrong with a `validate` that the schema has found no error in. */
export function validationFault({ hook, boot }: ValidationSource): ValidationFault | undefined {
  if (hook === undefined && boot === undefined) {
    return { key: '', reason: 'has neither hook nor boot', remedy: 'name one, or remove it' };
  }
  const words = attempt(() => hookWords(hook ?? ['true']));
  if (words instanceof Error) {
    return {
      key: '/hook',
      reason: 'has a quote or backslash without its counterpart',
      remedy: 'close or remove it',
    };
  }
  if (!words[0]) return { key: '/hook', reason: 'names no command', remedy: 'name one, or remove it' };
  const expression = attempt(() => new RegExp(boot?.expect ?? ''));
  if (!(expression instanceof Error)) return undefined;
  return {
    key: '/boot/expect',
    reason: `is no regular expression: ${expression.message}`,
    remedy: 'correct it; a backslash in front of a character lets it mean itself',
  };
}

/**
 * A `validate` without a {@link validationFault}.
 *
 * @param absolute makes a path absolute
 */
export function toValidation(
  { hook, boot }: ValidationSource,
  absolute: (path: string) => string,
): ImageValidation {
  const [command = '', ...args] = hookWords(hook ?? []);
  return {
    ...(hook !== undefined && { hook: [programPath(command, absolute), ...args] }),
    ...(boot !== undefined && { boot: { ...boot, expect: new RegExp(boot.expect) } }),
  };
}

/** The words of a `validate.hook`. @throws ImageError for a quote that is not closed */
export function hookWords(hook: readonly string[] | string): readonly string[] {
  return typeof hook === 'string' ? shellWords(hook, 'the hook') : hook;
}

/** The result, or the error with which a value is refused. */
function attempt<T>(work: () => T): T | ImageError | SyntaxError {
  try {
    return work();
  } catch (error) {
    if (error instanceof ImageError || error instanceof SyntaxError) return error;
    throw error;
  }
}
