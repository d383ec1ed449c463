/**
 * Runs the real manager with the double's clouds, and reports ready images to the double: `manager-program.ts
 * <settings>`.
 */
import { readFile } from 'node:fs/promises';
import { ImageManager, openStateStore } from '@nodepool-builder/image-manager';
import { callCloud, DoubleProvider } from './cloud-client.ts';
import { reportReady } from './report-ready.ts';
import { managerConfiguration, providerNames, type SoakSettings } from './soak-settings.ts';

const [settingsFile] = process.argv.slice(2) as [string];
const settings = JSON.parse(await readFile(settingsFile, 'utf8')) as SoakSettings;
const providers = new Map(
  providerNames(settings).map((name) => [name, new DoubleProvider(name, settings.cloud)]),
);
const print = (message: string): void => console.error(message);
const store = await openStateStore(settings.store);
reportReady(store, async (externalIds) => {
  await callCloud(settings.cloud, { call: 'ready', externalIds });
});
const manager = new ImageManager({
  configuration: managerConfiguration(settings),
  provider: (name) => providers.get(name),
  store,
  servers: [{ host: '127.0.0.1', port: settings.port }],
  logger: { debug: () => {}, info: print, warn: print, error: print },
  pollInterval: 200,
});
console.log('at work');
await manager.run(new AbortController().signal);
