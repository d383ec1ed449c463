import { Ajv, type Options } from 'ajv';

/**
 * A validator of data by schemas of ours. What it would do about them takes longer at each start than the data ever
 * does: to compile the schema of schemas, a tenth of a second, and to optimise its code, as long as to write it.
 */
export function createAjv(options: Options = {}): Ajv {
  return new Ajv({ ...options, validateSchema: false, code: { optimize: false } });
}
