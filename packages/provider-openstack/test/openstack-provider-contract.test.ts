import { foreignTo, imageListContract, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import { CloudDouble } from '../../../test/doubles/openstack/cloud-double.ts';
import { openProvider } from './provider-fixture.ts';
import { openRealCloud } from './real-cloud.ts';

imageProviderContract('OpenStackProvider', async (t) => {
  const { settings } = await openRealCloud(t);
  const provider = openProvider(t, settings, { formats: ['qcow2', 'raw', 'vpc'] });
  return { provider, foreign: foreignTo(openProvider(t, settings, { name: 'other' })) };
});

imageProviderContract('OpenStackProvider with tasks', async (t) => {
  const cloud = await CloudDouble.start(t);
  const open = (name: string) => openProvider(t, cloud.settings(true), { name, formats: ['vhd'] });
  return { provider: open('cloud'), foreign: foreignTo(open('other')) };
});

imageListContract('OpenStackProvider', async (t, endpoint) => {
  const settings = (await CloudDouble.start(t)).settings();
  const image = { ...settings.image, endpointOverride: `${endpoint}/v2` };
  return {
    provider: openProvider(t, { ...settings, image }),
    page: (marker) => {
      const next = marker === undefined ? {} : { next: `/v2/images?marker=${marker}` };
      return { type: 'application/json', body: JSON.stringify({ images: [], ...next }) };
    },
  };
});
