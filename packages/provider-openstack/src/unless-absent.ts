import { OpenStackError } from './openstack-error.ts';

/** For `catch`: undefined in place of what the cloud does not have. */
export function unlessAbsent(error: unknown): undefined {
  if (error instanceof OpenStackError && error.code === 'not-found') return;
  throw error;
}
