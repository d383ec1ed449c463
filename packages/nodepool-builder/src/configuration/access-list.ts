import type { AccessRight, AccessRules } from '@nodepool-builder/gearman-node';
import { ConfigurationError } from './fault.ts';
import { readDocument } from './read-document.ts';
import { schemaFaults } from './schema-faults.ts';

const RIGHTS: readonly AccessRight[] = ['submit', 'register', 'administer'];

const SCHEMA = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    propertyNames: { enum: RIGHTS },
    additionalProperties: { type: 'array', items: { type: 'string' } },
  },
};

/**
 * Reads who may do what on a job server: a mapping of certificates' common names to rights, each with the prefixes of
 * the functions it extends to.
 *
 * @throws ConfigurationError with every fault, each with line, reason and remedy
 */
export async function loadAccessList(file: string): Promise<AccessRules> {
  const document = await readDocument(file, '--access-list');
  const faults = schemaFaults(document, SCHEMA);
  if (faults.length > 0) throw new ConfigurationError(file, faults);
  return document.value as AccessRules;
}
