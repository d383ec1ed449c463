import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { CONFIGURATION_SCHEMA } from '../../src/configuration/schema.ts';

test('the schema of the configuration is a JSON schema', () => {
  const ajv = new Ajv();
  assert.equal(ajv.validateSchema(CONFIGURATION_SCHEMA), true, ajv.errorsText());
});
