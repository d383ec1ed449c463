import { ImageError, type ImageErrorCode } from '../src/index.ts';

/** For `assert.rejects` and `assert.throws`: whether it is an ImageError with this code, and what it says. */
export function withCode(code: ImageErrorCode, message?: RegExp): (error: unknown) => boolean {
  return (error) => {
    if (!(error instanceof ImageError)) throw error;
    if (error.code !== code) throw new Error(`code is ${error.code}: ${error.message}`, { cause: error });
    if (message !== undefined && !message.test(error.message))
      throw new Error(`message is: ${error.message}`);
    return true;
  };
}
