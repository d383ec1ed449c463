import { createRequire } from 'node:module';
import type { Ajv, Options } from 'ajv';

/**
 * Creates a validator for schemas of this project. It skips two steps that take longer at each start than all
 * validation does: compiling the schema of schemas (0.1 s), and optimising the generated code. ajv itself is loaded
 * with the first validator: many commands validate nothing.
 */
export function createAjv(options: Options = {}): Ajv {
  const { Ajv: Validator } = createRequire(import.meta.url)('ajv') as typeof import('ajv');
  return new Validator({
    ...options,
    validateSchema: false,
    strictTypes: false,
    code: { optimize: false },
    formats: {
      path: true,
      directory: true,
      program: true,
      words: true,
      time: (text: string) => !Number.isNaN(Date.parse(text)),
    },
  });
}
