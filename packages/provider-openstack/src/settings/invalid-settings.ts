import { OpenStackError } from '../openstack-error.ts';

/** Settings that cannot be used. The values themselves stay out of the message: any of them may be a secret. */
export function invalidSettings(reason: string, remedy: string): OpenStackError {
  return new OpenStackError('invalid-settings', `${reason}; ${remedy}`);
}
