/** Both services in one process without an SDK, with our hooks to switch on and off. */
import express from 'express';
import pg from 'pg';
import { LIBRARIES } from '../../instrumentation/libraries.ts';
import { Runtime } from '../../instrumentation/process/runtime.ts';
import { defaultConfig } from '../../src/telemetry/config.ts';
import { answer } from './child.ts';
import { startService } from './services.ts';

const runtime = new Runtime(defaultConfig(), 'bench', LIBRARIES);
const definitions = runtime.takeModules();
/** What is wrapped when it is loaded, which here it is already. */
const MODULES: Readonly<Record<string, unknown>> = { express, pg };

const urls = { service: await startService('service'), hello: await startService('hello') };

const answers = {
  ready() {
    return urls;
  },
  switchHooks(isOn: boolean) {
    if (isOn === runtime.isRunning) return;
    for (const { name, patch, unpatch } of definitions) {
      const module = MODULES[name];
      if (module !== undefined) (isOn ? patch : unpatch)?.(module);
    }
    if (isOn) runtime.start();
    else runtime.stop();
  },
  /** CPU time of the main thread, in µs: what helper threads collect and compile falls into one half or the other. */
  cpuUs() {
    const { user, system } = process.threadCpuUsage();
    return user + system;
  },
};
export type SwitchedAnswers = typeof answers;

answer(answers);
