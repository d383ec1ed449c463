import { instanceProviderContract } from '@nodepool-builder/image-builder/testing';
import { openNovaCloud, PUBLIC_KEY, runThere } from './instance-cloud.ts';

instanceProviderContract('OpenStackInstanceProvider', async (t) => {
  const { open, nova } = await openNovaCloud(t);
  return {
    open,
    request: { image: 'base', publicKey: PUBLIC_KEY, port: nova.port },
    probe: async (address) => void (await runThere(address, 'true')),
    run: runThere,
  };
});
