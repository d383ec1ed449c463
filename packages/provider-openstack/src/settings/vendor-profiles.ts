import type { Mapping } from './merged-cloud.ts';

const DEFAULT_DOMAINS = { user_domain_name: 'Default', project_domain_name: 'Default' };

/**
 * Public settings of vendor clouds by `profile`. They are those of openstacksdk, with the image formats of
 * os-client-config 1.22, which are the default of `image-type`. Keys that do not affect images are omitted. The regions
 * of datacentred and ultimum are also omitted: os-client-config writes them as `region-name`, which it ignores in a
 * profile.
 */
export const VENDOR_PROFILES: ReadonlyMap<string, Mapping> = new Map<string, Mapping>(
  Object.entries({
    auro: {
      auth: { auth_url: 'https://api.van2.auro.io:5000/v3', ...DEFAULT_DOMAINS },
      region_name: 'RegionOne',
    },
    binero: { auth: { auth_url: 'https://auth.binero.cloud:5000/v3' }, regions: ['europe-se-1'] },
    // bluebox has no auth_url, because each customer has a cloud.
    bluebox: { region_name: 'RegionOne' },
    catalyst: {
      auth: { auth_url: 'https://api.cloud.catalyst.net.nz:5000/v2.0' },
      regions: ['nz-por-1', 'nz_wlg_2'],
      image_format: 'raw',
    },
    citycloud: {
      auth: { auth_url: 'https://{region_name}.citycloud.com:5000/v3/' },
      regions: ['Buf1', 'Fra1', 'Lon1', 'Sto2', 'Kna1', 'dx1', 'tky1'],
    },
    conoha: {
      auth: { auth_url: 'https://identity.{region_name}.conoha.io' },
      regions: ['sin1', 'sjc1', 'tyo1'],
    },
    datacentred: { auth: { auth_url: 'https://compute.datacentred.io:5000' } },
    dreamcompute: {
      auth: { auth_url: 'https://iad2.dream.io:5000' },
      region_name: 'RegionOne',
      image_format: 'raw',
    },
    dreamhost: {
      status: 'deprecated',
      message: 'use the profile dreamcompute instead',
      auth: { auth_url: 'https://keystone.dream.io' },
      region_name: 'RegionOne',
      image_format: 'raw',
    },
    elastx: { auth: { auth_url: 'https://ops.elastx.cloud:5000/v3' }, region_name: 'se-sto' },
    entercloudsuite: {
      auth: { auth_url: 'https://api.entercloudsuite.com/' },
      regions: ['it-mil1', 'nl-ams1', 'de-fra1'],
    },
    fuga: {
      auth: { auth_url: 'https://identity.api.fuga.io:5000', ...DEFAULT_DOMAINS },
      regions: ['cystack'],
    },
    ibmcloud: { auth: { auth_url: 'https://identity.open.softlayer.com' }, regions: ['london'] },
    internap: {
      auth: { auth_url: 'https://identity.api.cloud.iweb.com' },
      regions: ['ams01', 'da01', 'nyj01', 'sin01', 'sjc01'],
    },
    limestonenetworks: {
      auth: { auth_url: 'https://auth.cloud.lstn.net:5000/v3' },
      regions: ['us-dfw-1', 'us-slc'],
      image_format: 'raw',
    },
    osic: { auth: { auth_url: 'https://cloud1.osic.org:5000' }, regions: ['RegionOne'] },
    otc: {
      auth: { auth_url: 'https://iam.{region_name}.otc.t-systems.com/v3' },
      regions: ['eu-de', 'eu-nl'],
    },
    ovh: {
      auth: { auth_url: 'https://auth.cloud.ovh.net/', ...DEFAULT_DOMAINS },
      regions: 'BHS,BHS1,BHS3,BHS5,DE,DE1,GRA,GRA1,GRA5,GRA7,SBG,SBG1,SBG5,UK,UK1,WAW,WAW1,SYD1,SGP1'.split(
        ',',
      ),
      image_format: 'raw',
    },
    'ovh-us': {
      auth: { auth_url: 'https://auth.cloud.ovh.us/', ...DEFAULT_DOMAINS },
      regions: ['US-EAST-VA-1', 'US-WEST-OR-1', 'US-EAST-VA', 'US-WEST-OR'],
    },
    rackspace: {
      auth: { auth_url: 'https://identity.api.rackspacecloud.com/v2.0/' },
      regions: ['DFW', 'HKG', 'IAD', 'ORD', 'SYD', 'LON'],
      image_format: 'vhd',
      image_api_use_tasks: true,
      disable_vendor_agent: { vm_mode: 'hvm', xenapi_use_agent: 'False' },
    },
    switchcloud: {
      auth: { auth_url: 'https://identity.compute.cloud.switch.ch/v3' },
      regions: ['zhw', 'zhc'],
      image_format: 'raw',
    },
    switchengines: {
      auth: { auth_url: 'https://keystone.cloud.switch.ch:5000/v3' },
      regions: ['LS', 'ZH'],
      image_format: 'raw',
      image_api_use_tasks: true,
    },
    ultimum: { auth: { auth_url: 'https://console.ultimum-cloud.com:5000/' } },
    unitedstack: {
      auth: { auth_url: 'https://identity.api.ustack.com/v3' },
      regions: ['bj1', 'gd1'],
      image_format: 'raw',
    },
    vexxhost: { auth: { auth_url: 'https://auth.vexxhost.net' }, regions: ['ca-ymq-1'] },
    zetta: { auth: { auth_url: 'https://identity.api.zetta.io/v3' }, regions: ['no-osl1'] },
  }),
);
