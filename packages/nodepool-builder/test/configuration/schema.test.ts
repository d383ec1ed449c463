import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { Modules } from '../../src/configuration/modules.ts';
import { configurationSchema } from '../../src/configuration/schema.ts';

test('the configuration’s schema is a JSON Schema', () => {
  const ajv = new Ajv();
  assert.equal(ajv.validateSchema(configurationSchema(Modules.builtIn)), true, ajv.errorsText());
});
