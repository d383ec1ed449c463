import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { configurationSchema } from '../../src/configuration/schema.ts';
import { Modules } from '../../src/modules.ts';

test('the schema of the configuration is a JSON schema', () => {
  const ajv = new Ajv();
  assert.equal(ajv.validateSchema(configurationSchema(Modules.builtIn)), true, ajv.errorsText());
});
