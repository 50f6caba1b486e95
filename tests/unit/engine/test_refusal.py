"""CHK-6: refusals ("I have no tools") are recognised in at least ten languages, other refusals and limits are not.

The HELD_OUT samples were written before the words of the recogniser and never used to tune them; the first run found
38 of the 40 refusals and took none of the 82 others for one. TRAPS are what earlier words fell for, and their like.
"""

import statistics

import jiter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.golden import CASES
from testkit.timing import BAR, growth
from toolspeak.engine.refusal import HELD_CHARS, RefusalWatch, RefusalWords, languages, refuses_tools
from toolspeak.ir.json import JsonObject

CORPUS = CASES / "failures.jsonl"

HELD_OUT_REFUSALS = """
I'm just a text-based assistant, so I have no way to look inside your project folder.
Unfortunately I do not have the ability to execute shell commands in this environment.
I apologize for the inconvenience, but browsing websites is not something I am able to do.
我只是一个语言模型，不能直接读取您电脑上的文件。
很遗憾，我目前没有联网功能，所以查不到今天的天气。
请您自己在终端里执行这条命令，然后把输出结果发给我。
Lamentablemente, como modelo de lenguaje no puedo abrir archivos en tu ordenador.
No dispongo de herramientas para ejecutar código en este chat.
Perdona, pero no tengo conexión a internet, así que no puedo consultar esa página.
Malheureusement, je ne suis pas en mesure de naviguer sur le web.
En tant que modèle de langage, je ne peux pas exécuter de commandes sur votre machine.
Je n'ai aucun outil à ma disposition pour le moment.
Ich bin nur ein Sprachmodell und kann keine Dateien auf Ihrem Computer öffnen.
Tut mir leid, mir stehen keine Werkzeuge zur Verfügung.
Bitte führen Sie den Befehl selbst aus und schicken Sie mir die Ausgabe.
Infelizmente, não consigo acessar a internet em tempo real.
Como uma IA, não tenho a capacidade de executar comandos no seu computador.
Não possuo ferramentas disponíveis para abrir seus arquivos.
Я всего лишь языковая модель и не имею доступа к вашей файловой системе.
Извините, но я не умею выполнять команды на вашем компьютере.
Пожалуйста, запустите эту команду самостоятельно и пришлите мне результат.
私はAIなので、あなたのパソコン上のファイルを直接開くことはできません。
残念ながら、インターネットに接続する機能がありません。
お手数ですが、ご自身でコマンドを実行して結果を貼り付けてください。
저는 AI 언어 모델이기 때문에 인터넷에 접속할 수 없습니다.
안타깝게도 현재 사용할 수 있는 도구가 없습니다.
직접 명령어를 실행한 뒤 결과를 여기에 붙여넣어 주세요.
Mi dispiace, ma non ho accesso a internet e quindi non posso cercare quella notizia.
Purtroppo non sono in grado di eseguire comandi sul tuo sistema.
Essendo un modello linguistico, non dispongo di strumenti per leggere i tuoi file.
عذرًا، ليس لدي أدوات متاحة ولا أستطيع الوصول إلى ملفاتك.
بصفتي نموذجًا لغويًا، لا يمكنني تصفح الإنترنت.
मुझे खेद है, लेकिन मैं इंटरनेट तक नहीं पहुँच सकता।
एक एआई होने के नाते मैं आपके कंप्यूटर पर कमांड नहीं चला सकता।
Üzgünüm, dosya sisteminize erişimim yok.
Bir yapay zeka olarak internete bağlanamıyorum.
Przepraszam, ale nie mam dostępu do żadnych narzędzi.
Jako model językowy nie mogę uruchamiać poleceń na Twoim komputerze.
Helaas heb ik geen toegang tot je bestanden.
Als taalmodel kan ik niet op internet zoeken.
"""

HELD_OUT_OTHERS = """
I can't assist with hacking into someone else's account.
I'm sorry, but I won't write code that steals passwords.
I cannot provide instructions for making explosives.
I don't have a tool for sending text messages, but I can draft one for you.
None of the functions I was given can book a flight.
The tools at hand only read files; they cannot delete them.
I can't open config.yaml: the read_file tool returned "No such file or directory".
Unfortunately the command failed with exit code 1.
Sorry, the search returned no results for that phrase.
I have no idea why the test is flaky, but the log points to a race.
I have no objections to the plan.
I don't have a preference; both designs work.
I can confirm that the tools are installed.
I cannot recommend version 2 because it breaks the API.
Sorry for the confusion! The variable should be named count.
Unfortunately, yes: the bug is in the parser.
As an AI researcher, Hinton worked on neural networks for decades.
Please run the tests before you push.
Do you have tools for reading files?
"I have no tools" is what the old model answered.
Models without tool support cannot access files, so the prompt must include them.
{"error": "no tools available"}
No.
Yes, all three files exist.
def run(command): raise NotImplementedError("no access to the shell")
```bash
cat notes.txt
```
我无法协助制作武器。
抱歉，我不能提供他人的个人隐私信息。
没有问题，我已经修改了文件。
我没有找到名为 main.py 的文件。
抱歉，读取文件时出错：权限被拒绝。
现有的工具都不能修改银行密码。
Lo siento, no puedo ayudarte a fabricar un arma.
No tengo dudas: el error está en la línea 12.
No se pudo leer el archivo: permiso denegado.
Ninguna de las herramientas disponibles puede enviar correos.
No, el archivo no contiene esa función.
Désolé, je ne peux pas vous aider à pirater un compte.
Je n'ai pas trouvé de fichier portant ce nom.
Aucun des outils disponibles ne permet de modifier votre mot de passe.
Malheureusement, la commande a échoué avec le code 2.
Je ne peux que confirmer: le test passe.
Es tut mir leid, aber dabei kann ich nicht helfen: das wäre illegal.
Ich habe keine Fehler in der Datei gefunden.
Leider ist die Datei nicht vorhanden.
Keines meiner Werkzeuge kann E-Mails verschicken.
Ich kann keine Anleitung zum Bau einer Bombe geben.
Desculpe, não posso ajudar a criar um vírus.
Não encontrei o arquivo config.json na pasta.
Infelizmente o comando falhou: permissão negada.
Nenhuma das ferramentas disponíveis pode alterar a senha.
Não tenho certeza, mas parece um erro de digitação.
Извините, я не могу помочь с изготовлением оружия.
У меня нет сомнений, что ошибка в строке 12.
К сожалению, файл не найден.
Ни один из доступных инструментов не может отправить письмо.
Я не нашёл в проекте такого файла.
申し訳ありませんが、武器の作り方についてはお手伝いできません。
ファイルは見つかりませんでした。
利用可能なツールの中に、パスワードを変更できるものはありません。
ツールの実行結果は次のとおりです。
私は二つのファイルを修正しました。
죄송하지만 무기 제작은 도와드릴 수 없습니다.
파일을 읽는 중 오류가 발생했습니다: 권한이 거부되었습니다.
제가 가진 도구로는 비밀번호를 변경할 수 없습니다.
도구 실행이 완료되었습니다.
Mi dispiace, non posso aiutarti a costruire un'arma.
Non ho trovato il file nella cartella src.
Purtroppo il comando è fallito: permesso negato.
Nessuno degli strumenti disponibili può inviare e-mail.
Non ho altre domande, procedo con la modifica.
عذرًا، لا أستطيع المساعدة في صنع سلاح.
لم يتم العثور على الملف.
क्षमा करें, मैं हथियार बनाने में मदद नहीं कर सकता।
Üzgünüm, silah yapımında yardımcı olamam.
Dosya bulunamadı: yol yanlış.
Przepraszam, ale nie mogę pomóc w budowie broni.
Niestety polecenie zakończyło się błędem.
Helaas is het bestand niet gevonden.
Ik kan je niet helpen met het maken van een wapen.
"""

REFUSALS = {
    "en": """
I have no tools.
I don't have access to your file system.
As an AI, I can't browse the internet.
Please run this command yourself and paste the output here.
I’m sorry, but I cannot execute code or run commands.
Unfortunately, I don’t have any tools available in this conversation.
I'm just a language model and can't access files on your computer.
I am unable to open URLs or visit websites.
Sorry! I do not have the ability to search the web.
There are no tools available to me right now.
I understand that you want me to read config.yaml, but I don't have access to your local files.
I don't have internet access, so I can't look up the current weather.
Could you paste the contents of main.py here?
As a text-based AI model, I don't have the capability to interact with your file system.
I can't directly access, open, or read files on your machine.
I'd be happy to help! However, I can't see your files. Could you share the contents of the file?
No tools were provided to me, so I can only answer from memory.
You'll need to run the script yourself and send me the result.
**I don't have direct access to your repository.** Here is how you can check it:
"I'm sorry, I don't have access to external tools."
I currently don't have access to real-time data.
I lack the ability to run shell commands.
I cannot access external websites, but I can tell you what I know.
I don't have the ability to view your files directly.
Sorry, I have no access to the internet.
I'm an AI text model, so I don't have a file system to read from.
I do not have any function calling capabilities.
Since I can't execute commands, please run `ls` and paste the output.
I'm not able to access your computer or any files on it.
My apologies, but as a large language model I can't run code.
I don't have tools to access the web.
It seems I don't have access to any tools in this session.
I don't have permission to access the internet.
I'm unable to browse.
""",
    "zh": """
我没有工具。
抱歉，我无法访问您的文件系统。
作为一个AI语言模型，我不能浏览互联网。
请您自行运行该命令，并把输出粘贴到这里。
很抱歉，我没有可以使用的工具来读取文件。
对不起，我没有执行代码的能力，也无法运行命令。
我目前无法直接访问你的电脑。
由于我无法联网，所以不能查询实时天气。
我只是一个文本模型，没有访问外部网站的权限。
非常抱歉，我不具备上网功能。
请把文件的内容复制粘贴到这里。
我没法打开链接。
当前环境没有可用的工具。
我不能直接读取本地文件，请提供文件内容。
我没有权限访问你的文件。
我无法使用任何工具。
抱歉，我是一个AI助手，没有办法直接操作您的计算机。
不好意思，我不能执行命令。
我没有访问互联网的能力。
""",
    "es": """
No tengo herramientas.
No tengo acceso a tu sistema de archivos.
Como modelo de lenguaje, no puedo navegar por internet.
Por favor, ejecuta tú mismo el comando y pega aquí la salida.
Lo siento, pero no puedo ejecutar comandos ni código.
Desafortunadamente, no dispongo de acceso a tus archivos.
Soy solo una IA y no puedo acceder a páginas web.
No cuento con ninguna herramienta disponible.
Disculpa, no tengo la capacidad de abrir enlaces.
Actualmente no tengo acceso a información en tiempo real.
¿Podrías pegar aquí el contenido del archivo?
Me temo que no puedo leer tus archivos directamente.
No soy capaz de ejecutar código en tu ordenador.
Entiendo lo que pides, pero no tengo acceso a internet.
No puedo usar herramientas.
Lamento decirte que no tengo la posibilidad de acceder a tu ordenador.
Como IA no dispongo de acceso a la red.
""",
    "fr": """
Je n'ai pas d'outils.
Je n’ai pas accès à votre système de fichiers.
En tant qu'IA, je ne peux pas naviguer sur Internet.
Veuillez exécuter vous-même cette commande et coller la sortie ici.
Je suis désolé, mais je ne peux pas exécuter de code.
Malheureusement, je ne dispose d'aucun outil.
Je suis une IA et je n'ai pas la possibilité d'ouvrir vos fichiers.
Il m'est impossible d'accéder à des sites web.
Désolée, je ne suis pas capable de lire des fichiers sur votre ordinateur.
Actuellement, je n'ai pas accès à des informations en temps réel.
Pourriez-vous coller le contenu du fichier ici ?
Je n'ai aucun moyen de consulter internet.
Aucun outil n'est disponible dans cette conversation.
Je comprends votre demande, mais je n'ai pas accès à vos fichiers.
Je n'ai malheureusement pas accès à internet.
Je ne peux pas accéder à votre ordinateur.
Je suis un modèle de langage et je ne peux pas utiliser d'outils.
""",
    "de": """
Ich habe keine Werkzeuge.
Ich habe keinen Zugriff auf Ihr Dateisystem.
Als KI kann ich nicht im Internet surfen.
Bitte führe den Befehl selbst aus und füge die Ausgabe hier ein.
Es tut mir leid, aber ich kann keine Befehle ausführen.
Leider kann ich nicht auf deine Dateien zugreifen.
Als Sprachmodell habe ich keine Möglichkeit, Webseiten aufzurufen oder auf das Internet zuzugreifen.
Mir stehen in diesem Gespräch keine Tools zur Verfügung.
Ich bin nicht in der Lage, Code auf Ihrem Rechner auszuführen.
Entschuldigung, ich kann Ihre Dateien nicht lesen.
Ich verfüge über keine Werkzeuge.
Ich habe keinen Internetzugang und kann das aktuelle Wetter nicht abrufen.
Da ich keinen Zugriff auf das Internet habe, kann ich die Seite nicht öffnen.
Könnten Sie bitte den Inhalt der Datei hier einfügen?
Ich kann leider nicht auf das Internet zugreifen.
Ich habe leider keine Möglichkeit, Dateien auf Ihrem Computer zu lesen.
Als KI-Modell habe ich keinen direkten Zugriff auf externe Systeme.
""",
    "pt": """
Não tenho ferramentas.
Não tenho acesso ao seu sistema de arquivos.
Como um modelo de linguagem, não posso navegar na internet.
Por favor, execute o comando você mesmo e cole a saída aqui.
Desculpe, mas não consigo executar código.
Infelizmente, não posso abrir links nem acessar sites.
Sou apenas uma IA e não consigo ler os seus arquivos.
Não disponho de nenhuma ferramenta no momento.
Sinto muito, não tenho acesso a dados em tempo real.
Lamento, mas não sou capaz de aceder a ficheiros locais.
Você poderia colar o conteúdo do arquivo aqui?
Atualmente não tenho acesso à internet.
Não tenho a capacidade de rodar comandos no terminal.
Entendo, mas não tenho acesso aos seus arquivos.
Não posso acessar seus arquivos.
Não tenho como executar comandos.
Peço desculpas, mas não tenho acesso a nenhuma ferramenta.
""",
    "ru": """
У меня нет инструментов.
У меня нет доступа к вашей файловой системе.
Как языковая модель, я не могу просматривать интернет.
Пожалуйста, выполните эту команду сами и пришлите вывод.
Извините, но я не могу выполнять код.
К сожалению, я не могу открывать ссылки и заходить на сайты.
Я — языковая модель и не имею доступа к интернету.
У меня нет возможности читать файлы на вашем компьютере.
Простите, мне недоступны никакие инструменты.
Я не имею доступа к данным в реальном времени.
Скопируйте содержимое файла и вставьте его сюда.
Поскольку я ИИ, я не могу запускать команды на вашем компьютере.
В данный момент у меня нет доступа к каким-либо инструментам.
Я понимаю, но у меня нет доступа к вашим файлам.
Я не могу получить доступ к вашему компьютеру.
К сожалению, у меня нет возможности выходить в интернет.
Я не могу использовать инструменты.
""",
    "ja": """
ツールがありません。
申し訳ございませんが、お使いのファイルシステムにアクセスできません。
私はAI言語モデルのため、インターネットを閲覧することができません。
ご自身でこのコマンドを実行し、出力を貼り付けてください。
すみませんが、コマンドを実行することはできません。
残念ながら、利用できるツールがありません。
私には外部のウェブサイトにアクセスする機能がありません。
申し訳ありませんが、コードを直接実行することはできません。
現在、ツールを使用できません。
私はテキストベースのAIであり、ローカルファイルを読み取ることはできません。
リアルタイムの情報にアクセスする手段がありません。
URLを開くことはできません。申し訳ありません。私はインターネットに接続できません。
AIアシスタントとして、あなたのパソコンを操作することはできません。
ファイルを直接読むことはできませんので、内容を貼り付けてください。
私はツールを持っていません。
申し訳ありません。私はインターネットにアクセスできません。
コマンドの実行はできません。
""",
    "ko": """
저는 도구가 없습니다.
죄송하지만 사용자의 파일 시스템에 접근할 수 없습니다.
AI 언어 모델로서 인터넷을 검색할 수 없습니다.
직접 명령을 실행하고 출력 결과를 공유해 주세요.
죄송합니다. 저는 코드를 실행할 수 없습니다.
저는 외부 웹사이트에 접속할 수 없습니다.
현재 사용 가능한 도구가 없습니다.
저에게는 파일을 직접 열 수 있는 기능이 없습니다.
유감스럽게도 실시간 정보에 접근할 수 없습니다.
저는 텍스트 기반 AI라서 컴퓨터의 파일을 읽을 수 없습니다.
인터넷에 연결되어 있지 않아 날씨를 확인할 수 없습니다.
제가 사용할 수 있는 도구가 없어서 파일을 읽을 수 없습니다.
명령을 실행할 수 있는 권한이 없습니다.
파일에 직접 접근할 수 없으니 내용을 여기에 붙여 넣어 주세요.
저는 인터넷에 접근할 수 없습니다.
죄송하지만 저는 명령을 실행할 수 없습니다.
도구를 사용할 수 없습니다.
""",
    "it": """
Non ho strumenti.
Non ho accesso al tuo file system.
Come modello linguistico, non posso navigare su internet.
Per favore, esegui tu stesso il comando e incolla qui l'output.
Mi dispiace, ma non posso eseguire codice.
Purtroppo non dispongo di alcuno strumento.
Sono solo un'intelligenza artificiale e non posso accedere ai tuoi file.
Non sono in grado di aprire link o visitare siti web.
Scusa, non ho la possibilità di leggere file sul tuo computer.
Al momento non ho accesso a informazioni in tempo reale.
Potresti incollare qui il contenuto del file?
In quanto IA, non ho la capacità di eseguire comandi nel terminale.
Non ho accesso ad alcuno strumento.
Capisco, ma non ho accesso a internet.
Non posso usare strumenti.
Mi spiace, non ho modo di accedere ai tuoi file.
Come IA non posso eseguire comandi.
""",
    "ar": """
ليس لدي أدوات.
عذرًا، لا يمكنني الوصول إلى نظام الملفات الخاص بك.
للأسف، لا أستطيع تنفيذ الأوامر على جهازك.
يرجى تشغيل الأمر بنفسك وإرسال الناتج هنا.
""",
    "hi": """
मेरे पास कोई टूल नहीं है।
क्षमा करें, मैं आपके फ़ाइल सिस्टम तक नहीं पहुंच सकता।
मैं इंटरनेट ब्राउज़ नहीं कर सकता।
कृपया यह कमांड स्वयं चलाएं और आउटपुट यहां पेस्ट करें।
""",
    "tr": """
Hiçbir araca erişimim yok.
Maalesef bilgisayarınızdaki dosyalara erişemiyorum.
Bir dil modeli olarak komut çalıştıramam.
Lütfen komutu kendiniz çalıştırın ve çıktıyı buraya yapıştırın.
""",
    "pl": """
Nie mam narzędzi.
Niestety nie mam dostępu do Twojego systemu plików.
Jako AI nie mogę przeglądać internetu.
Proszę uruchomić to polecenie samodzielnie i wkleić wynik tutaj.
""",
    "nl": """
Ik heb geen tools.
Sorry, ik heb geen toegang tot je bestandssysteem.
Als AI kan ik geen opdrachten uitvoeren op je computer.
Voer de opdracht zelf uit en plak de uitvoer hier.
""",
}

SAFETY = """
I can't help with making a weapon.
I cannot assist with that request.
I'm sorry, but I can't help you break into your neighbour's computer.
I can't run commands that would destroy the system.
I won't do that.
I am unable to provide medical advice.
As an AI, I can't take part in illegal activities such as hacking websites.
I cannot access other people's private data without their consent.
Sorry, I can't share personal data about this person.
I can't execute code that is malicious.
我不能帮助你入侵他人的电脑。
对不起，我无法提供制作炸弹的方法。
作为AI，我不能参与违法活动。
No puedo ayudarte a hackear sitios web.
Lo siento, no puedo proporcionar instrucciones para fabricar explosivos.
Como IA, no puedo participar en actividades ilegales.
Je ne peux pas vous aider à fabriquer une arme.
En tant qu'IA, je ne peux pas participer à des activités illégales en ligne.
Désolé, je ne peux pas fournir ces informations.
Ich kann Ihnen nicht helfen, eine Waffe zu bauen.
Als KI kann ich keine illegalen Aktivitäten im Internet unterstützen.
Leider kann ich dabei nicht helfen.
Não posso ajudar a invadir o computador de outra pessoa.
Desculpe, não posso fornecer essas informações.
Я не могу помочь взломать чужой компьютер.
К сожалению, я не могу выполнить эту просьбу.
Как ИИ, я не могу участвовать в незаконных действиях в интернете.
申し訳ありませんが、そのご依頼にはお応えできません。
他人のパソコンに不正にアクセスする方法はお教えできません。
私は違法な行為を支援することはできません。
죄송하지만 그 요청은 도와드릴 수 없습니다.
저는 불법적인 해킹을 도울 수 없습니다.
Non posso aiutarti a entrare nel computer di un'altra persona.
Mi dispiace, non posso fornire queste informazioni.
لا يمكنني المساعدة في اختراق جهاز شخص آخر.
मैं किसी और के कंप्यूटर को हैक करने में मदद नहीं कर सकता।
Başkasının bilgisayarına girmenize yardım edemem.
Nie mogę pomóc w włamaniu do cudzego komputera.
Ik kan je niet helpen om iemands computer te hacken.
"""

HONEST_LIMITS = """
None of my tools can do this.
The available tools do not let me browse the web.
Unfortunately, the tools I have only cover the weather.
I don't have a tool that can change your bank password.
I have no tool for sending emails.
I can't browse the web with the tools I have.
I don't have any tools for booking flights.
I can't access the internet. None of the available tools allows it.
I can't read files directly, but I can use the read_file tool.
我的工具都无法做到这一点。
抱歉，现有工具只能查询天气。
我没有能修改密码的工具。
可用的工具不支持发送邮件。
Ninguna de mis herramientas puede hacer eso.
No tengo ninguna herramienta para enviar correos.
Las herramientas disponibles no permiten navegar por la web.
Aucun de mes outils ne permet de faire cela.
Je n'ai pas d'outil pour envoyer des e-mails.
Désolé, les outils disponibles ne couvrent que la météo.
Keines der verfügbaren Werkzeuge kann das.
Ich habe kein Werkzeug, um E-Mails zu versenden.
Leider decken die vorhandenen Werkzeuge das nicht ab.
Nenhuma das minhas ferramentas pode fazer isso.
Não tenho nenhuma ferramenta para enviar e-mails.
Ни один из моих инструментов этого не умеет.
У меня нет инструмента для отправки писем.
К сожалению, имеющиеся инструменты показывают только погоду.
私のツールではそれを行うことはできません。
メールを送信できるツールがありません。
申し訳ありませんが、提供されたツールではパスワードを変更できません。
제 도구로는 그 작업을 할 수 없습니다.
이메일을 보낼 수 있는 도구가 없습니다.
Nessuno dei miei strumenti può farlo.
Non ho uno strumento per inviare e-mail.
Purtroppo gli strumenti disponibili riguardano solo il meteo.
لا تسمح الأدوات المتاحة بذلك.
उपलब्ध टूल में से कोई भी यह नहीं कर सकता।
Mevcut araçların hiçbiri bunu yapamaz.
Żadne z moich narzędzi tego nie potrafi.
Geen van mijn tools kan dit.
"""

TOOL_FAILURES = """
The file could not be read: permission denied.
I couldn't open the file because it does not exist.
I can't access the file: the tool returned an error.
I can't read your file because the path was not found.
Unfortunately, the web search timed out.
Sorry, the command failed with exit code 127.
I was unable to reach the server; the connection timed out.
I'm unable to open your file: access denied.
There are no tools in the toolbox directory.
No functions named parse were found in the module.
读取文件失败：没有权限。
抱歉，命令执行失败，返回码为 1。
我没有在目录中找到该文件。
我无法打开您的文件，因为它不存在。
No se encontró el archivo.
Lo siento, el comando falló con el código 1.
No puedo abrir tu archivo: permiso denegado.
Le fichier n'a pas pu être lu : permission refusée.
Je n'ai pas pu lire le fichier.
Je ne peux pas ouvrir votre fichier : accès refusé.
Die Datei konnte nicht gelesen werden: Zugriff verweigert.
Leider ist der Befehl fehlgeschlagen.
Ich kann Ihre Datei nicht öffnen: Zugriff verweigert.
O arquivo não pôde ser lido: permissão negada.
Desculpe, o comando falhou.
Не удалось прочитать файл: отказано в доступе.
К сожалению, команда завершилась с ошибкой.
Я не могу открыть ваш файл: он не существует.
ファイルを読み込めませんでした。権限がありません。
申し訳ありませんが、コマンドの実行に失敗しました。
ウェブサイトにアクセスできませんでした。
파일을 찾을 수 없습니다.
죄송하지만 명령 실행에 실패했습니다.
웹사이트에 접속할 수 없었습니다.
Il file non può essere letto: permesso negato.
Purtroppo il comando non è riuscito.
تعذر قراءة الملف: تم رفض الإذن.
फ़ाइल नहीं मिली।
Dosya okunamadı: izin reddedildi.
Nie udało się odczytać pliku: odmowa dostępu.
Het bestand kon niet worden gelezen: toegang geweigerd.
"""

ORDINARY = """
No.
Yes.
42
OK
I can see two files in the folder.
I can run the tests now.
I have read the file; it has 12 lines.
I have no further questions.
I don't have the exact number, but it is about five million.
I don't have any concerns about this design.
I don't think the tools are the problem.
I can't see any errors in your project.
I can't reproduce the bug.
I can't recommend this library.
I don't see any tools in the list that you sent.
Sorry, I misread your question. The answer is 7.
Sorry about that! Here is the corrected code.
Unfortunately, Python has no built-in tool for this.
Unfortunately the meeting was cancelled.
I'm sorry to hear that.
I'm sorry, which file do you mean?
Which tools do you have installed?
What can I do without tools?
Do I have access to the internet?
Please run `npm install` and then start the server.
Please note that files in the web folder are public.
Language models have no access to the internet unless tools are offered.
A model without tools can't read files, so it asks the user to paste the contents.
The assistant answered: "I don't have access to your files."
"I don't have access to your files" is a typical refusal.
'I have no tools' was the whole answer.
> I don't have access to your file system.
The error message says "you do not have access to the internet".
My favourite tool is the hammer.
As an aircraft mechanic, you need good tools.
As an AI company, we have no access to customer files.
There are no tools on the desk.
No problem! The file is saved.
Let me read the file first.
I don't have access to the file contents yet. Let me read the file.
I understand. I will read your files now.
Currently 14 degrees and cloudy in Berlin.
The capital of France is Paris. I don't have access to your calendar.
{"tools": [], "access": false}
[1, 2, 3]
<p>I have no tools</p>
# I have no tools
```python
print("I have no tools")
import os
SELECT * FROM files WHERE access = 0;
$ cat notes.txt
I'm done: all three commands ran without errors.
I am a big fan of the internet.
I can't wait to see your project!
I only have one suggestion for your code.
My abilities include reading files and running commands.
Could you please tell me which branch you mean?
Can you share which city you want the weather for?
You need to run the migration before the tests.
Hello! How can I help you today?
Thanks! The files on your computer are in order.
好的，我已经读取了文件。
没有。
我没有意见。
我不认为这是工具的问题。
我能看到两个文件。
抱歉，刚才我理解错了，答案是 7。
你可以用浏览器打开这个网页。
目前北京气温 14 度。
No hay problema, el archivo está guardado.
No tengo más preguntas.
Lo siento, me equivoqué: la respuesta es 7.
Puedo ver dos archivos en la carpeta.
No puedo recomendar esta biblioteca.
¿Qué herramientas tienes instaladas?
Je n'ai pas d'autres questions.
Désolé, je me suis trompé : la réponse est 7.
Je peux lire le fichier.
Je ne peux pas recommander cette bibliothèque.
Quels outils avez-vous ?
Ich habe keine weiteren Fragen.
Ich habe die Datei gelesen.
Tut mir leid, ich habe mich geirrt: die Antwort ist 7.
Ich kann die Datei lesen.
Ich kann diese Bibliothek nicht empfehlen.
Welche Werkzeuge haben Sie?
Não tenho mais perguntas.
Desculpe, me enganei: a resposta é 7.
Não posso recomendar esta biblioteca.
Posso ler o arquivo.
У меня нет вопросов.
Извините, я ошибся: ответ 7.
Я прочитал файл.
Я не могу рекомендовать эту библиотеку.
Какие инструменты у вас есть?
すみません、間違えました。答えは7です。
私はファイルを読みました。
ファイルには12行あります。
インターネットは便利です。
どのツールを使いますか?
저는 파일을 읽었습니다.
죄송합니다. 답은 7입니다.
인터넷은 편리합니다.
어떤 도구를 사용할까요?
Non ho altre domande.
Scusa, mi sono sbagliato: la risposta è 7.
Posso leggere il file.
Non posso consigliare questa libreria.
Quali strumenti hai?
لا.
نعم، الملف موجود.
नहीं।
मैंने फ़ाइल पढ़ ली है।
Hayır.
Dosyayı okudum.
Nie.
Przeczytałem plik.
Nee.
Ik heb het bestand gelezen.
"""

TRAPS = """
Please provide the contents you want me to write to the file.
Could you share the contents of the new file that I should create?
Please copy the file to your web folder.
Please run the script on your machine to see the animation.
You need to run this on your own computer after the deployment.
I can't use tools like sed here because the file is binary, so I rewrote it in Python.
I can't access the database from this function; it is private in C++.
I cannot call functions before they are defined in JavaScript.
I have no way to know which files changed, so I listed all of them.
I have no access modifiers in this class; everything is public.
I don't have access to that variable in this scope, so I passed it as an argument.
Since I ran the tests on your machine, the cache is warm.
Because I can't run two commands at once, I ran them one after the other.
I understand that you can't access the internet from the container. Add a proxy.
It looks like I don't have the right API key configured.
I'm a language model assistant, and I just created the files on your computer.
As an AI assistant, I searched the web and found three links.
As a language model I have opinions on tools, but no feelings.
As an AI, I don't have feelings, but I enjoy using tools.
As an AI language model, I don't have personal opinions.
As an AI, I do not have a body.
I don't have the file path. Which file should I read?
I don't have your location. Which city do you mean?
I don't have access to your location, which city do you want the weather for?
I can't open the door for you, but I can run the script.
I can't make the deadline with this code.
I can't make external calls in unit tests, so I mocked them.
I can't find the tools directory on your system.
I can't write to /etc: read-only file system.
I can't connect to the database: connection refused.
I can't reach the internet from the sandbox: curl returned 6.
I'm unable to run the tests on your machine since pytest is missing.
I'm not able to see commands in the log.
Please paste this snippet into your terminal.
Please open your browser and go to localhost:3000.
Running commands in your terminal is easy: open it and type ls.
Accessing your files from the container needs a volume.
No tools are needed for this.
No functions are exported from this module.
There are no functions in this file.
I have no tools to recommend for gardening.
I see that you can't access your files; restart the server.
I would like to run the following commands: ls, cat. May I?
I'd like to read your files first. Is that OK?
While I can't see your screen, the log shows the cause: a missing comma.
我没有修改任何文件，只运行了命令。
我不会修改您的文件，除非您同意。
我没有发现网络访问的问题。
我目前正在使用工具读取文件。
我没有使用任何外部库。
我不能保证这个命令在您的系统上可用。
我不建议直接运行这个脚本。
请在终端运行 npm install。
请先打开浏览器，然后输入网址。
作为AI，我没有个人感情。
我只运行了一个命令，没有其他操作。
私はコマンドを実行しましたが、問題はありませんでした。
私はツールを使って確認しました。問題ありません。
インターネット接続に問題はありません。
ツールを使用する必要はありません。
コマンドを実行する必要はありません。
ファイルを開く必要はありません。
私はツールの使用に異議はありません。
私には個人的な意見がありません。
저는 인터넷 연결에 문제가 없습니다.
도구를 사용할 필요가 없습니다.
명령을 실행할 필요는 없습니다.
웹사이트에 문제가 없습니다.
저는 개인적인 의견이 없습니다.
외부 라이브러리를 사용하지 않습니다.
인터넷이 없는 환경에서도 사용 가능합니다.
У меня нет возражений против этой команды.
У меня нет доступных данных о вашем городе. Какой город вы имеете в виду?
Я не использую внешние библиотеки.
Я не могу найти ваш файл в проекте.
Я не могу найти ошибку в вашем коде.
Как ИИ, я не имею личного мнения.
Я понимаю, что у вас нет доступа к интернету.
Не могли бы вы уточнить, какой файл открыть?
Выполните команду npm install.
No tengo preferencia entre tus archivos.
No tengo acceso a esa variable en esta función.
No hay herramientas en la carpeta.
No puedo encontrar tu archivo en el proyecto.
No estoy seguro de qué archivo abrir en tu proyecto.
No tengo opiniones personales como IA.
Por favor, ejecuta npm install en tu terminal.
Puedes copiar el archivo y compartirlo con tu equipo.
Je n'ai pas modifié vos fichiers.
Je n'ai pas d'opinion personnelle.
Je ne suis pas sûr du fichier à ouvrir dans votre projet.
Je ne suis pas d'accord avec les outils en ligne.
Je n'ai pas accès à cette variable ici.
Veuillez exécuter npm install dans votre terminal.
Ich habe keine Dateien auf Ihrem Rechner verändert.
Ich habe keine Probleme mit dem Zugriff auf Ihre Dateien.
Ich habe nicht die neueste Version der Tools verwendet.
Ich bin ein Fan von Tools.
Ich kann nicht empfehlen, diese Befehle zu verwenden.
Ich kann auf Ihre Dateien zugreifen.
Ich habe keine persönliche Meinung.
Bitte führen Sie npm install aus.
Führen Sie den Befehl in Ihrem Terminal aus, um den Server zu starten.
Sie müssen den Befehl als Administrator ausführen.
Não tenho acesso a essa variável nesta função.
Não consigo encontrar o seu arquivo no projeto.
Não estou usando ferramentas externas.
Não tenho opiniões pessoais.
Você precisa executar npm install no terminal.
Non ho modificato i tuoi file.
Non ho opinioni personali.
Non sono sicuro di quale file aprire nel tuo progetto.
Non posso trovare il file nel tuo progetto.
Per favore, esegui npm install nel terminale.
Devi eseguire il comando come amministratore.
Nie mam pytań dotyczących twoich plików.
Proszę uruchomić npm install.
Ik heb geen bestanden op je computer gewijzigd.
Ik kan je bestand niet vinden.
Lütfen npm install komutunu çalıştırın.
मैं आपकी फ़ाइल पढ़ सकता हूँ।
मैंने कोई कमांड नहीं चलाई।
मुझे आपकी फ़ाइल में कोई समस्या नहीं दिखी।
لا أستطيع العثور على ملفاتك.
ليس لدي رأي شخصي.
I can't decide which tool is better.
I don't have the results yet. I will run the command again.
Sorry, there were no links on that page.
I can't go into detail about this code because the license forbids it.
I can't get the tests to pass with these commands.
I cannot use this function in async code.
I can't create a folder named con on your system; Windows reserves that name.
I can't edit your file while it is open in Excel.
Unfortunately I don't have a web page for you, but here is the text.
I have no access to a car, so I take the bus.
I don't have a method called run in this class.
I'm an AI and I just ran the commands; everything works.
Unfortunately, your computer has no internet access.
我没有更多的信息可以提供。
我不喜欢这个网站。
我没有删除您的文件。
我不能确定您的系统版本。
No tengo información sobre esa web.
No puedo decidir qué archivo abrir.
Je n'ai pas d'informations sur ce site.
Je ne peux pas décider à votre place.
Ich habe keine Informationen über diese Webseite.
Ich kann nicht sagen, welche Datei richtig ist.
Ich kann das Internet nicht leiden.
Não tenho informações sobre esse site.
У меня нет информации об этом сайте.
Я не могу сказать, какой файл верный.
私はこのサイトの情報を持っていません。
ファイルを読みましたが、エラーはありません。
このコマンドは使えません。
저는 그 사이트에 대한 정보가 없습니다.
명령을 실행했지만 결과가 없습니다.
Non ho informazioni su quel sito.
Non posso dire quale file sia giusto.
"""

OTHERS = {
    "safety": SAFETY,
    "honest limits": HONEST_LIMITS,
    "failures of tools": TOOL_FAILURES,
    "ordinary": ORDINARY,
    "traps": TRAPS,
}
LONG = "The build takes four steps, and each of them writes its own log into the folder of the same name. " * 7


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


def corpus() -> list[JsonObject]:
    return [jiter.from_json(line) for line in CORPUS.read_bytes().splitlines()]


def let_go_after(text: str) -> int:
    """Return how many characters were fed when the watch stopped holding; one more than there are if it never did."""
    watch = RefusalWatch()
    return next((end for end, char in enumerate(text, start=1) if not watch.feed(char)), len(text) + 1)


ALL = [
    line for text in (*REFUSALS.values(), *OTHERS.values(), HELD_OUT_REFUSALS, HELD_OUT_OTHERS) for line in lines(text)
]


@pytest.mark.parametrize("case", corpus(), ids=lambda case: str(case["id"]))
def test_the_corpus_says_what_is_to_be_retried_chk6(case: JsonObject) -> None:
    expected = case["expect"]
    assert isinstance(expected, dict)
    assert refuses_tools(str(case["raw_output"])) == (expected.get("signal") == "retry_refusal")


def test_the_corpus_has_its_thirteen_refusal_cases_chk6() -> None:
    assert sum(case["group"] == "refusal" for case in corpus()) == 13


@pytest.mark.parametrize("language", REFUSALS)
def test_refusals_are_recognised_in_each_language_chk6(language: str) -> None:
    texts = lines(REFUSALS[language])
    missed = [text for text in texts if not refuses_tools(text)]
    print(f"{language}: {len(texts) - len(missed)} of {len(texts)}")
    assert len(texts) >= (4 if language in {"ar", "hi", "tr", "pl", "nl"} else 12)
    assert len(missed) <= 0.05 * len(texts), missed


@pytest.mark.parametrize("kind", OTHERS)
def test_no_other_answer_is_taken_for_a_refusal_chk6(kind: str) -> None:
    texts = lines(OTHERS[kind])
    wrong = [text for text in texts if refuses_tools(text)]
    print(f"{kind}: {len(texts)} texts")
    assert not wrong


def test_the_samples_are_many_enough_chk6() -> None:
    assert sum(len(lines(text)) for text in OTHERS.values()) >= 150
    assert len(lines(HELD_OUT_REFUSALS)) >= 40
    assert len(lines(HELD_OUT_OTHERS)) >= 80


def test_samples_that_no_word_was_chosen_for_are_told_apart_chk6() -> None:
    found = sum(map(refuses_tools, lines(HELD_OUT_REFUSALS)))
    wrong = [text for text in lines(HELD_OUT_OTHERS) if refuses_tools(text)]
    print(f"held out: {found} of {len(lines(HELD_OUT_REFUSALS))} refusals, {len(wrong)} others")
    assert found >= 38
    assert not wrong


@pytest.mark.parametrize("text", ["", " ", "\n\n", "Sorry", "I", "I don't have", '"', "`", "\ufeff", "😀"])
def test_a_scrap_is_no_refusal_chk6(text: str) -> None:
    assert not refuses_tools(text)


@pytest.mark.parametrize(
    "text",
    [
        "  \n I HAVE NO TOOLS",
        "**I have no tools.**",
        "😔 I have no tools.",
        "\ufeffI have no tools.",
        "\u201cI have no tools.\u201d",
        "'I have no tools.'",
        "Sorry!! Unfortunately... I have no tools",
        "I don\u2019t have access to your file\u00a0system.",
        "De\u0301sole\u0301, je n'ai pas acce\u0300s a\u0300 vos fichiers.",
        "抱歉，我没有可用的工具",
        "抱歉！我没有可用的工具！",
        "ＳＯＲＲＹ，I have no tools.",
        "I have no tools.\n\n" + LONG,
    ],
)
def test_dress_does_not_hide_a_refusal_chk6(text: str) -> None:
    assert refuses_tools(text)


@pytest.mark.parametrize(
    "text",
    [
        LONG + "I don't have access to your file system.",
        "I can't say it shorter. " + LONG + "I have no tools.",
        '"I have no tools." So it said.',
        "'I have no tools.' So it said.",
        "\u201cI have no tools\u201d, it said.",
        "«У меня нет инструментов» — так он ответил.",
        "「ツールがありません」と表示されました。",
        'I don\'t have "access to your file system" in the log.',
        "I don't have `no tools` in the log.",
        "I can't read that. None of my tools reads your files on the internet. I have no tools for it.",
    ],
)
def test_a_quotation_or_a_remark_at_the_end_is_no_refusal_chk6(text: str) -> None:
    assert not refuses_tools(text)


@given(st.data())
def test_cuts_do_not_matter_chk6(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(ALL) | st.text() | st.lists(st.sampled_from(ALL), max_size=4).map(" ".join))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    expected = let_go_after(text)
    watch = RefusalWatch()
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        assert watch.feed(text[start:end]) == (end < expected)
    assert watch.verdict() == refuses_tools(text)


@given(st.sampled_from(ALL), st.text())
def test_what_was_let_go_stays_so_chk6(text: str, more: str) -> None:
    watch = RefusalWatch()
    if not watch.feed(text):
        before = watch.verdict()
        assert not watch.feed(more)
        assert watch.verdict() == before


@pytest.mark.parametrize("language", REFUSALS)
def test_a_refusal_is_held_back_until_its_end_chk6(language: str) -> None:
    assert [text for text in lines(REFUSALS[language]) if refuses_tools(text) and let_go_after(text) <= len(text)] == []


def test_ordinary_answers_are_let_go_after_few_words_chk6() -> None:
    texts = [text for text in lines(ORDINARY) + lines(TOOL_FAILURES) if len(text.split()) > 3]
    words = [len(text[: let_go_after(text)].split()) for text in texts]
    chars = [let_go_after(text) for text in texts]
    print(f"let go after {statistics.median(words)} words, {statistics.median(chars)} characters (median)")
    assert statistics.median(words) <= 3
    assert statistics.median(chars) <= 12


@pytest.mark.parametrize(
    ("text", "chars"),
    [
        ("The file has 12 lines.", 4),
        ("```python", 1),
        ('{"a": 1}', 1),
        ("I can see two files.", 7),
        ("I can't help with that.", 9),
        ("Sorry, that was wrong.", 11),
        ("Unfortunately the file is gone.", 18),
        ("\ufb03I have no tools.", 1),
    ],
)
def test_an_answer_is_let_go_where_it_leaves_the_openers_chk6(text: str, chars: int) -> None:
    assert let_go_after(text) <= chars


@pytest.mark.parametrize("size", [HELD_CHARS - 1, HELD_CHARS, HELD_CHARS + 1])
def test_no_more_is_held_than_the_limit_chk6(size: int) -> None:
    watch = RefusalWatch()
    assert watch.feed(("I have no tools, " + "so " * HELD_CHARS)[:size]) == (size < HELD_CHARS)
    assert watch.verdict()


@pytest.mark.parametrize(
    "piece", ["I have no ", "sorry ", "I can't access ", '"', " ", "so, ", "我没有", "I can't read that. ", "i"]
)
def test_a_megabyte_costs_no_more_than_its_beginning_chk6(piece: str) -> None:
    whole = piece * (1_000_000 // len(piece))
    assert growth(refuses_tools, whole[: 2 * HELD_CHARS], whole) < BAR


def test_a_megabyte_in_single_characters_is_linear_chk6() -> None:
    def feed(text: str) -> None:
        watch = RefusalWatch()
        for char in text:
            watch.feed(char)

    whole = "I have no tools, so " * 50_000
    assert growth(feed, whole[:500_000], whole) <= BAR


def phrases_of(words: RefusalWords) -> list[str]:
    """List all phrases of a language."""
    lists = (words.softeners, words.openers, words.purposes, words.vetoes, *words.parts.values())
    claims = (*words.claims, *words.bare_claims, *words.across)
    return [phrase for one in (*lists, *(term for claim in claims for term in claim)) for phrase in one]


@pytest.mark.parametrize("words", languages(), ids=lambda words: words.name)
def test_the_phrases_of_a_language_are_well_formed_chk6(words: RefusalWords) -> None:
    """An empty phrase or term would match every text, and a blank too many none."""
    assert all((words.softeners, words.openers, words.claims, words.bare_claims, words.purposes, words.vetoes))
    assert all(claim and all(claim) for claim in (*words.claims, *words.bare_claims, *words.across))
    for phrase in phrases_of(words):
        assert phrase
        assert "  " not in phrase
        assert phrase.count("(") == phrase.count(")")
        written = words.alternatives((phrase,))  # raises KeyError for an unknown list
        assert not set(written) & set("{}&[]*+?\\^$")


def test_every_language_is_there_once_chk6() -> None:
    names = [words.name for words in languages()]
    assert len(set(names)) == len(names) == 15


def test_the_disk_belongs_to_the_world_chk6() -> None:
    """Two blanks before the word kept its phrase from ever matching."""
    assert refuses_tools("I'm sorry, but I don't have access to your disk.")
