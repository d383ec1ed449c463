import { join, resolve } from 'node:path';
import type { CloudSettings } from '../cloud-settings.ts';
import type { MergedCloud } from './merged-cloud.ts';
import type { SettingsPlace } from './settings-request.ts';

/**
 * `verify`, `insecure`, `cacert`, `cert` and `key`; paths become absolute.
 *
 * @throws OpenStackError `invalid-settings` for a `verify` that is neither true nor false
 */
export function tlsSettings(cloud: MergedCloud, place: SettingsPlace): CloudSettings['tls'] {
  const verify = verified(cloud);
  const caFile = path(cloud.text('cacert'), place);
  const certFile = path(cloud.text('cert'), place);
  const keyFile = certFile === undefined ? undefined : path(cloud.text('key'), place);
  if (!verify && caFile !== undefined) {
    cloud.warn('cacert is of no use, for certificates are not verified');
  }
  return {
    verify,
    ...(caFile === undefined ? {} : { caFile }),
    ...(certFile === undefined ? {} : { certFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
  };
}

function verified(cloud: MergedCloud): boolean {
  if (cloud.flag('insecure') === true) return false;
  const verify = cloud.flag('verify');
  // Nothing but a clear no turns verification off.
  if (verify === undefined && cloud.has('verify')) {
    throw cloud.fault('verify is neither true nor false', 'name a file of certificates with cacert');
  }
  return verify ?? true;
}

function path(named: string | undefined, { home, cwd }: SettingsPlace): string | undefined {
  if (named === undefined) return undefined;
  return resolve(cwd, named === '~' || named.startsWith('~/') ? join(home, named.slice(1)) : named);
}
