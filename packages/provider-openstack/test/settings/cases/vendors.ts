import { VENDOR_PROFILES } from '../../../src/settings/vendor-profiles.ts';
import { oneCloud, type SettingsCase } from '../settings-case.ts';

const RELEASE = 'os-client-config 1.22 had it so, and builds depend on it';
const GONE = 'os-client-config 1.22 had it, and openstacksdk has it no longer';
const NEWER = 'openstacksdk knows it since 3.2, or not yet';

const DIFFERENCES: Readonly<Record<string, SettingsCase['differs']>> = {
  binero: {
    why: NEWER,
    ours: {
      'auth.auth_url': 'https://auth.binero.cloud:5000/v3',
      'image.region': 'europe-se-1',
      'object_store.region': 'europe-se-1',
    },
  },
  citycloud: {
    why: 'os-client-config 1.22 and earlier openstacksdk had no format',
    since: '1.1',
    ours: { image_format: 'qcow2' },
  },
  datacentred: {
    why: GONE,
    ours: { 'auth.auth_url': 'https://compute.datacentred.io:5000', 'image.region': undefined },
  },
  dreamhost: {
    why: RELEASE,
    ours: {
      'auth.auth_url': 'https://keystone.dream.io',
      image_format: 'raw',
      'image.region': 'RegionOne',
      'object_store.region': 'RegionOne',
    },
  },
  internap: {
    why: 'openstacksdk has a new address',
    since: '0.103',
    ours: { 'auth.auth_url': 'https://identity.api.cloud.iweb.com' },
  },
  osic: {
    why: GONE,
    ours: {
      'auth.auth_url': 'https://cloud1.osic.org:5000',
      'image.region': 'RegionOne',
      'object_store.region': 'RegionOne',
    },
  },
  ovh: { why: RELEASE, ours: { image_format: 'raw' } },
  switchcloud: {
    why: NEWER,
    ours: {
      'auth.auth_url': 'https://identity.compute.cloud.switch.ch/v3',
      image_format: 'raw',
      'image.region': 'zhw',
      'object_store.region': 'zhw',
    },
  },
  switchengines: { why: RELEASE, ours: { image_api_use_tasks: true } },
};

/** Profiles that openstacksdk would download from the vendor. */
const REMOTE = 'vexxhost';

/** Each built-in profile with its first region. */
export const VENDORS: readonly SettingsCase[] = [...VENDOR_PROFILES.keys()]
  .filter((profile) => profile !== REMOTE)
  .map((profile) => {
    const differs = DIFFERENCES[profile];
    return {
      title: `the profile ${profile}`,
      files: {
        'cwd/clouds.yaml': oneCloud(`profile: ${profile}`, 'project_name: project').replace(
          / *auth_url.*\n/,
          '',
        ),
      },
      ...(differs === undefined ? {} : { differs }),
    };
  });
